// SPDX-License-Identifier: MIT OR Apache-2.0
//! `restart`: how long no guest runs, from the last instruction of one under the old hypervisor to the first under the
//! new one.
//!
//! | variant | from | to |
//! |---|---|---|
//! | `cold` | the machine is reset | the guest's first instruction; between them the firmware |
//! | `linux to baton` | Linux's last line, then `kexec -e` | the same |
//! | `warm` | the first guest is stopped | the same, both by the host's own clock |
//! | `linux to linux` | as `linux to baton` | /init's first word |
//!
//! The machine is the same (two CPUs), and so is the guest, a program that starts at once. Where the tool's clock
//! is the watch, an end is the line with which the host logs the guest's start, just before its first instruction.

use anyhow::Result;

use super::report::{Figure, Goal, Report};
use super::{Bench, Context};

mod hosted;
mod replaced;

use replaced::Follower;

const GOAL: &str = "warm_vs_linux_kexec";

pub(super) static BENCH: Bench = Bench {
    name: "restart",
    about: "how long no guest runs while the hypervisor is replaced: by firmware, by kexec from Linux, warm; and Linux \
            by kexec",
    goals: &[Goal::at_most(GOAL, 0.01, "ratio")],
    run,
};

/// Measures a kexec of stock Linux, in milliseconds.
pub(super) fn linux_to_linux_ms(context: &Context) -> Result<f64> {
    replaced::measure(context, Follower::Linux)
}

/// Milliseconds, a value for each run.
#[derive(Default)]
struct Blackouts {
    cold: Vec<f64>,
    to_baton: Vec<f64>,
    to_linux: Vec<f64>,
    warm: Vec<f64>,
    asked: Vec<f64>,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut blackouts = Blackouts::default();
    for run in 1..=context.runs {
        let step = |what: &str| context.step(&format!("restart: run {run} of {}, {what}", context.runs));
        step("warm");
        let warm = hosted::warm(context)?;
        blackouts.warm.push(warm.blackout_ms);
        blackouts.asked.push(warm.asked_ms);
        step("Linux to Linux");
        blackouts.to_linux.push(replaced::measure(context, Follower::Linux)?);
        step("cold");
        blackouts.cold.push(hosted::cold(context)?);
        step("Linux to Baton");
        blackouts.to_baton.push(replaced::measure(context, Follower::Baton)?);
    }
    report_times(report, blackouts)
}

fn report_times(report: &mut Report<'_>, blackouts: Blackouts) -> Result<()> {
    let figure = |variant: &str, runs: &[f64]| Figure::measured(variant, "blackout", "ms", runs);
    let linux = figure("linux to linux", &blackouts.to_linux);
    let ratio = report.compared(figure("warm", &blackouts.warm), linux, "warm/linux to linux", "blackout_ratio")?;
    report.figure(Figure::measured("warm", "asked_to_answer", "ms", blackouts.asked))?;
    for (variant, runs) in [("cold", &blackouts.cold), ("linux to baton", &blackouts.to_baton)] {
        report.figure(figure(variant, runs))?;
        let ratios = super::statistics::ratios(runs, &blackouts.to_linux);
        report.figure(Figure::measured(format!("{variant}/linux to linux"), "blackout_ratio", "ratio", ratios))?;
    }
    report.goal(GOAL, ratio)
}
