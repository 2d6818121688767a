// SPDX-License-Identifier: MIT OR Apache-2.0
//! `vmx`: exits and updates with Intel VMX, in Bochs.
//!
//! Bochs interprets one instruction at a time, and its time stamp counter advances by one with each: on a machine of
//! one CPU, ticks are instructions, guest's and host's alike, and repeat exactly. The image is the test image, which
//! alone has VMX; its fault points are on no path that is measured. The guests are those of `exits` and `update`.
//!
//! A switch is not measured: the guest of `sched` computes with interrupts disabled, and Bochs 2.7 lets no interrupt of
//! the host's timer into such a guest if it was entered so. SVM is not measured beside it: Bochs holds a virtual
//! interrupt back that is pending at VMRUN, so that the guest's interrupt to itself never comes
//! (`e2e/tests/boots/bochs.rs`).

use std::time::Duration;

use anyhow::{Result, bail};
use baton::config::Image;
use baton::size::Size;
use lab::{What, bochs};
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::context::Build;
use super::exits::{self, OFF};
use super::host::Hosted;
use super::report::{Figure, Goal, Report};
use super::setup::{HostSetup, keeper};
use super::{Bench, Context};

const INSTRUCTIONS: &str = "instructions";
const BLACKOUT: &str = "vmx_blackout_instructions_per_cpu";
const BOOTS: &str = "bochs_boots_passed";
const SWITCH: &str = "vmx_switch_instructions";

pub(super) static BENCH: Bench = Bench {
    name: "vmx",
    about: "Intel VMX in Bochs: instructions of exits, and of an update's blackout",
    goals: &[
        Goal::at_most("vmx_cpuid_exit_instructions", 400.0, INSTRUCTIONS),
        Goal::at_most("vmx_port_exit_instructions", 400.0, INSTRUCTIONS),
        Goal::at_most("vmx_mmio_exit_instructions", 900.0, INSTRUCTIONS),
        Goal::at_most("vmx_self_ipi_instructions", 1050.0, INSTRUCTIONS),
        Goal::at_most(SWITCH, 1200.0, INSTRUCTIONS),
        Goal::at_most(BLACKOUT, 25_000.0, INSTRUCTIONS),
        Goal::at_least(BOOTS, 1.0, "of all"),
    ],
    run,
};

/// Each goal of an exit and the row that is held against it.
const ROW_OF_GOAL: [(&str, &str); 4] = [
    ("vmx_cpuid_exit_instructions", "cpuid"),
    ("vmx_port_exit_instructions", "port"),
    ("vmx_mmio_exit_instructions", "mmio"),
    ("vmx_self_ipi_instructions", "self_ipi"),
];
/// Boots are the tests' (`bochs`, `vmx`), which count them.
const NOT_MEASURED: [&str; 2] = [BOOTS, SWITCH];
/// Of Bochs's models: EPT, VPID, unrestricted guests.
const MODEL: &str = "broadwell_ult";
const UPDATES: usize = 5;
const MEMORY: Size = Size::mebibytes(512);
const GUEST_MEMORY: Size = Size::mebibytes(64);
/// Bochs executes some ten million instructions a second beside others.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The line of a guest that watches what it loses.
const WATCHES: &str = "keeper: watch: ";

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

/// The same machine in Bochs, with the test image.
fn in_bochs(setup: HostSetup) -> HostSetup {
    let build = Build::WithFaultPoints;
    HostSetup { bochs: Some(MODEL), build, next_build: build, ..setup }
}

fn exits(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("vmx: exits");
    let hosted = Hosted::start_as(context, &exits::plan(context, OFF)?, |_, setup| in_bochs(setup))?;
    let rows = exits::measure_on(hosted)?.rows;
    report.figure(Figure::measured(MODEL, "timing_itself", INSTRUCTIONS, [rows.empty()]))?;
    for name in rows.names() {
        let Some(ticks) = rows.round_trip(&name) else {
            context.note(&format!("vmx: no row {name:?}: {}", rows.reason(&name)));
            continue;
        };
        let value = report.figure(Figure::measured(MODEL, &*name, INSTRUCTIONS, [ticks]))?;
        let mut goals = ROW_OF_GOAL.iter().filter(|(_, row)| *row == name);
        goals.try_for_each(|(goal, _)| report.goal(goal, value))?;
    }
    Ok(())
}

/// Returns the ticks of each update's blackout.
fn blackouts(context: &Context) -> Result<Vec<f64>> {
    let guests = vec![keeper(context, "seed=1 cpus=1 do=watch", GUEST_MEMORY)?];
    let setup = HostSetup { guests, image: Image::Usual, options: "tsc=skip".to_owned(), ..HostSetup::new(MEMORY) };
    let (mut host, mut console) = (in_bochs(setup).start(context)?, String::new());
    host.wait(context.timeout.max(TIMEOUT), "the guest's lines", |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        console.contains(WATCHES).then_some(())
    })?;
    let mut client = host.lab.client()?;
    let tsc_hz = client.info()?.tsc_hz as f64;
    let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    let update = |_| match client.request_within(TIMEOUT, body.clone())? {
        ReplyBody::Updated(report) => Ok((report.blackout_ns as f64 * tsc_hz / 1e9).round()),
        other => bail!("not the answer to an update: {other:?}"),
    };
    (0..UPDATES).map(update).collect()
}
