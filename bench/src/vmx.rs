// SPDX-License-Identifier: MIT OR Apache-2.0
//! `vmx`: exits and updates with Intel VMX, in Bochs.
//!
//! Bochs interprets one instruction at a time, and its time stamp counter advances by one with each: on a machine of
//! one CPU, ticks are instructions, guest's and host's alike, and rows repeat exactly. The image is the test image,
//! which alone has VMX; its fault points are on no path that is measured. The guests are those of `exits` and `update`.
//!
//! A switch is not measured: while the guest of `sched` computes on two vCPUs, with interrupts disabled, Bochs 2.7 lets
//! no interrupt of the host's timer through. SVM is not measured beside it: Bochs holds a virtual interrupt back that
//! is pending at VMRUN, so that the guest's interrupt to itself never comes (`e2e/tests/boots/bochs.rs`).

use anyhow::{Result, bail};
use lab::bochs;

use super::context::Build;
use super::exits::{self, OFF, report_rows};
use super::host::Hosted;
use super::report::{Figure, Goal, Report};
use super::setup::HostSetup;
use super::update::hosted::{self, Attempt, Setup};
use super::{Bench, Context};

const INSTRUCTIONS: &str = "instructions";
const BLACKOUT: &str = "vmx_blackout_instructions_per_cpu";
const BOOTS: &str = "bochs_boots_passed";
const SWITCH: &str = "vmx_switch";

pub(super) static BENCH: Bench = Bench {
    name: "vmx",
    about: "Intel VMX in Bochs: instructions of exits, and of an update's blackout",
    goals: &[
        Goal::at_most("vmx_cpuid_exit_instructions", 400.0, INSTRUCTIONS),
        Goal::at_most("vmx_port", 400.0, INSTRUCTIONS),
        Goal::at_most("vmx_mmio", 900.0, INSTRUCTIONS),
        Goal::at_most("vmx_self_ipi", 1050.0, INSTRUCTIONS),
        Goal::at_most(SWITCH, 1200.0, INSTRUCTIONS),
        Goal::at_most(BLACKOUT, 25_000.0, INSTRUCTIONS),
        Goal::at_least(BOOTS, 1.0, "of all"),
    ],
    run,
};

/// Each goal of an exit and the row that is held against it.
const ROW_OF_GOAL: [(&str, &str); 4] = [
    ("vmx_cpuid_exit_instructions", "cpuid"),
    ("vmx_port", "port"),
    ("vmx_mmio", "mmio"),
    ("vmx_self_ipi", "self_ipi"),
];
/// Boots are the tests' (`bochs`, `vmx`), which count them.
const NOT_MEASURED: [&str; 2] = [BOOTS, SWITCH];
/// Of Bochs's models: EPT, VPID, unrestricted guests.
const MODEL: &str = "broadwell_ult";
const UPDATES: usize = 5;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    if !bochs::is_here() {
        return BENCH.goals.iter().try_for_each(|goal| report.leave_out(goal.id));
    }
    exits(context, report)?;
    context.step("vmx: updates");
    let value = report.figure(Figure::measured(MODEL, "blackout", INSTRUCTIONS, blackouts(context)?))?;
    report.goal(BLACKOUT, value)?;
    NOT_MEASURED.into_iter().try_for_each(|goal| report.leave_out(goal))
}

fn exits(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("vmx: exits");
    let in_bochs = |_: &_, usual| HostSetup { bochs: Some(MODEL), build: Build::WithFaultPoints, ..usual };
    let hosted = Hosted::start_as(context, &exits::plan(context, OFF)?, in_bochs)?;
    let rows = exits::measure_on(hosted)?.rows;
    report_rows(context, report, (MODEL, INSTRUCTIONS), &[rows], &ROW_OF_GOAL)
}

/// Returns the ticks of each update's blackout.
fn blackouts(context: &Context) -> Result<Vec<f64>> {
    let builds = [Build::WithFaultPoints; 2];
    let mut hosted = hosted::Hosted::start(context, &Setup { builds, bochs: Some(MODEL), ..Setup::default() })?;
    let update = |_| match hosted.attempt()? {
        Attempt::Updated(report) => hosted.ticks(report.blackout_ns),
        Attempt::WaitedTooLong(us) => bail!("an update was rolled back after {us} us, although one CPU waits for none"),
    };
    (0..UPDATES).map(update).collect()
}
