// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bringup`: the cycles for which a host waits for its other CPUs.
//!
//! Five parts: one after the other against all at once; woken against parked across a warm restart; kicked early
//! against kicked when they are waited for; Baton against stock Linux on the same machine; and a model for sizes that
//! no machine here has. Hosts boot without guests (but for one that ends at once, where they restart), variants
//! alternating. An emulator that shows more CPUs than it has is slowed by each that executes: what it shows of 32
//! is less than what a machine would.

mod boot;
mod linux;
mod model;

use anyhow::{Context as _, Result};

use self::boot::{BringUp, PHASES};
use super::report::{Figure, Goal, Report};
use super::statistics::{median_at_most, ratios};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "bringup",
    about: "cycles until every CPU of a host is online: one after the other, all at once, parked across a \
            restart, and under Linux",
    goals: &[
        Goal::at_most("parallel_vs_serial_32", 0.1, "ratio"),
        Goal::at_most("park_vs_parallel_32", 0.1, "ratio"),
        Goal::at_most("early_kick_first_wait", 0.01, "ratio"),
        Goal::at_most("parallel_vs_linux612_16", 0.02, "ratio"),
        Goal::at_most("modelled_growth_4096_vs_128", 1.5, "ratio"),
    ],
    run,
};

/// Each is kicked when it is waited for, so that the policies differ in nothing else.
const POLICIES: [(&str, &str); 2] = [("serial", "smp=serial"), ("parallel", "smp=parallel kick=late")];
/// Policies of the image that a warm restart starts.
const RESTARTED: [(&str, &str); 2] =
    [("restarted parallel", "smp=parallel kick=late"), ("restarted park", "smp=park kick=late")];
const KICKS: [(&str, &str); 2] = [("late kick", "kick=late"), ("early kick", "kick=early")];
const CPUS: [u32; 4] = [2, 8, 32, 128];
const RESTARTED_CPUS: [u32; 4] = [2, 8, 32, 128];
const KICK_CPUS: [u32; 2] = [8, 32];
/// The number of CPUs of the goals for policies.
const GOAL_CPUS: u32 = 32;
/// Pairs of boots with that number at least: their ratios spread, so that the goal is held against a bound of their
/// median.
const GOAL_RUNS: usize = 9;
const KICK_GOAL_CPUS: u32 = 8;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for cpus in CPUS {
        let [serial, parallel] = alternate(context, report, cpus, POLICIES, boot::measure)?;
        let bound = ratio_of_totals(report, &format!("parallel/serial {cpus}"), [&parallel, &serial])?;
        if cpus == GOAL_CPUS {
            report.goal("parallel_vs_serial_32", bound)?;
        }
    }
    for cpus in RESTARTED_CPUS {
        let [parallel, park] = alternate(context, report, cpus, RESTARTED, boot::measure_restarted)?;
        let bound = ratio_of_totals(report, &format!("park/parallel {cpus}"), [&park, &parallel])?;
        if cpus == GOAL_CPUS {
            report.goal("park_vs_parallel_32", bound)?;
        }
    }
    for cpus in KICK_CPUS {
        let [late, early] = alternate(context, report, cpus, KICKS, boot::measure)?;
        let of = |run: &BringUp| run.last_first_sign;
        let ratio = ratio(report, &format!("early/late {cpus}"), "first_wait_ratio", [&early, &late], of)?;
        if cpus == KICK_GOAL_CPUS {
            report.goal("early_kick_first_wait", ratio)?;
        }
    }
    linux::compare(context, report)?;
    model::compute(context, report)
}

/// Boots both variants, alternating, and reports their figures.
fn alternate(
    context: &Context,
    report: &mut Report<'_>,
    cpus: u32,
    variants: [(&str, &str); 2],
    measure: fn(&Context, u32, &str) -> Result<BringUp>,
) -> Result<[Vec<BringUp>; 2]> {
    let mut runs = [Vec::new(), Vec::new()];
    let times = if cpus == GOAL_CPUS { context.runs.max(GOAL_RUNS) } else { context.runs };
    for run in 1..=times {
        for ((name, options), measured) in variants.iter().zip(&mut runs) {
            context.step(&format!("bringup: {cpus} CPUs, run {run} of {times}, {name}"));
            measured.push(measure(context, cpus, options)?);
        }
    }
    for ((name, _), measured) in variants.iter().zip(&runs) {
        report_variant(report, &format!("{name} {cpus}"), measured)?;
    }
    Ok(runs)
}

fn report_variant(report: &mut Report<'_>, variant: &str, runs: &[BringUp]) -> Result<()> {
    let mut figure = |metric: &str, of: &dyn Fn(&BringUp) -> f64| {
        report.figure(Figure::measured(variant, metric, "cycles", runs.iter().map(of).collect::<Vec<f64>>()))
    };
    figure("total", &|run| run.total)?;
    figure("kicks", &|run| run.kicks)?;
    figure("waits", &|run| run.waits)?;
    figure("last_first_sign", &|run| run.last_first_sign)?;
    for (index, phase) in PHASES.iter().enumerate() {
        let name = phase.replace('-', "_");
        figure(&format!("wait_{name}"), &|run| run.sum_of(index))?;
        figure(&format!("wait_{name}_median"), &|run| run.median_of(index))?;
    }
    Ok(())
}

/// Reports the ratio of two variants' totals, pair by pair; returns the bound below which its median is with a
/// confidence of 95 %.
fn ratio_of_totals(report: &mut Report<'_>, variant: &str, [ours, baseline]: [&[BringUp]; 2]) -> Result<f64> {
    ratio(report, variant, "total_ratio", [ours, baseline], |run| run.total)?;
    let totals = |runs: &[BringUp]| runs.iter().map(|run| run.total).collect::<Vec<f64>>();
    let bound = median_at_most(&ratios(&totals(ours), &totals(baseline))).context("there were no runs")?;
    report.figure(Figure::measured(variant, "total_ratio_median_at_most", "ratio", [bound]))
}

fn ratio(
    report: &mut Report<'_>,
    variant: &str,
    metric: &str,
    [numerators, denominators]: [&[BringUp]; 2],
    of: impl Fn(&BringUp) -> f64,
) -> Result<f64> {
    let values = |runs: &[BringUp]| runs.iter().map(&of).collect::<Vec<f64>>();
    // A wait of nothing is at least a cycle: a quotient has a value.
    let denominators: Vec<f64> = values(denominators).into_iter().map(|value| value.max(1.0)).collect();
    report.figure(Figure::measured(variant, metric, "ratio", ratios(&values(numerators), &denominators)))
}
