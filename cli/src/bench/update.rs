// SPDX-License-Identifier: MIT OR Apache-2.0
//! `update`: how long guests stand still while the hypervisor is replaced under them.
//!
//! | variant | what |
//! |---|---|
//! | `2 processors` | by the machine's clock, as guests see it (the longest that one of their processors was away) and as the host tells it |
//! | `icount, …` | in instructions, which repeat: from the first processor that leaves its guests to the last one back, shared by all |
//! | `rolled back` | from the order to leave the guests to the last processor back, when the new image fails |
//! | `linux to linux` | what a host of stock Linux takes for kexec, at least: no guest and no state |
//! | `128 processors` | modelled from the instructions of each step and the latencies of real processors |
//!
//! With instructions the emulator has the machine's processors take turns, and a processor that waits for another (PAUSE) passes
//! its turn on at once: so all that was executed in the gap, shared by the processors, is what one of them executes.

use anyhow::{Context as _, Result, bail};
use wire::UpdateReport;

use super::report::{Figure, Goal, Report};
use super::restart::linux_to_linux_ms;
use super::statistics::median;
use super::{Bench, Context};

mod hosted;
mod model;

use hosted::{Clock, Hosted, Setup};

const INSTRUCTIONS: &str = "instructions";
/// Updates of a real-time host, and of one whose instructions are counted.
const UPDATES: usize = 100;
const COUNTED_UPDATES: usize = 3;
/// How often each way to fail is tried.
const FAILURES: usize = 3;

pub(super) static BENCH: Bench = Bench {
    name: "update",
    about: "how long guests stand still while the hypervisor is replaced under them, and when that fails",
    goals: &[
        Goal::at_most("gap_median_us", 1_000.0, "us"),
        Goal::at_most("gap_max_of_100_us", 5_000.0, "us"),
        Goal::at_most("gap_instructions_per_cpu", 50_000.0, INSTRUCTIONS),
        Goal::at_most("gap_8g_vs_256m", 1.1, "ratio"),
        Goal::at_most("gap_8vcpu_vs_1", 2.0, "ratio"),
        Goal::at_most("rollback_us", 10_000.0, "us"),
        Goal::at_most("gap_vs_linux_kexec", 0.001, "ratio"),
    ],
    run,
};

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let gap_us = by_the_clock(context, report)?;
    roll_backs(context, report)?;
    by_instructions(context, report)?;
    let linux = (1..=context.runs).map(|run| {
        context.step(&format!("update: run {run} of {}, Linux to Linux", context.runs));
        linux_to_linux_ms(context)
    });
    let linux = linux.collect::<Result<Vec<f64>>>()?;
    let linux_ms = report.figure(Figure::measured("linux to linux", "gap", "ms", linux))?;
    report.goal("gap_vs_linux_kexec", gap_us / 1e3 / linux_ms)
}

/// As many processors as the lab has cores; returns the median of what guests see.
fn by_the_clock(context: &Context, report: &mut Report<'_>) -> Result<f64> {
    let setup = Setup { processors: 2, vcpus: 2, ..Setup::default() };
    let mut hosted = Hosted::start(context, &setup)?;
    let (mut seen, mut told, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for update in 1..=UPDATES {
        context.step(&format!("update: {update} of {UPDATES}"));
        rest.push(hosted.longest_away_us()?);
        let report = hosted.update()?;
        tell_steps(context, "2 processors", &report);
        told.push(report.gap_ns as f64 / 1e3);
        seen.push(hosted.longest_away_us()?);
    }
    report.figure(Figure::measured("2 processors", "away_without_an_update", "us", rest))?;
    report.figure(Figure::measured("2 processors", "gap_seen_by_guests", "us", &*seen))?;
    let median_us = report.figure(Figure::measured("2 processors", "gap", "us", &*told))?;
    let max = told.iter().copied().fold(0.0, f64::max);
    report.figure(Figure::measured("2 processors", "gap_max_of_100", "us", [max]))?;
    report.goal("gap_median_us", median_us)?;
    report.goal("gap_max_of_100_us", max)?;
    Ok(median_us)
}

/// Each way to fail that needs no patience: that is 5 ms where processors do not wait for cores.
fn roll_backs(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut worst = 0.0_f64;
    for fault in ["panic:restore", "exception:restore", "damage:restore", "panic:meet"] {
        context.step(&format!("update: rolled back after {fault}"));
        let options = format!("tsc=skip selftest=update:{fault}");
        let hosted = Hosted::start(context, &Setup { processors: 2, vcpus: 2, options, ..Setup::default() })?;
        let runs = (0..FAILURES).map(|_| hosted.rolled_back_us()).collect::<Result<Vec<f64>>>()?;
        worst = worst.max(report.figure(Figure::measured(format!("rolled back, {fault}"), "gap", "us", runs))?);
    }
    report.goal("rollback_us", worst)
}

fn by_instructions(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let counted = Setup { clock: Clock::Instructions, ..Setup::default() };
    let small = count(context, report, "1 vCPU, 256 MiB", &counted)?;
    let large = count(context, report, "1 vCPU, 8 GiB", &Setup { memory_mib: 8192, ..counted.clone() })?;
    count(context, report, "1 vCPU, 2 GiB", &Setup { memory_mib: 2048, ..counted.clone() })?;
    count(context, report, "1 vCPU, idle", &Setup { is_idle: true, ..counted.clone() })?;
    count(context, report, "4 guests", &Setup { guests: 4, memory_mib: 64, ..counted.clone() })?;
    for count_of in [2, 4] {
        let setup = Setup { processors: count_of, vcpus: count_of, ..counted.clone() };
        count(context, report, &format!("{count_of} vCPUs"), &setup)?;
    }
    let eight = count(context, report, "8 vCPUs", &Setup { processors: 8, vcpus: 8, ..counted })?;
    report.goal("gap_instructions_per_cpu", small.max(eight))?;
    report.goal("gap_8g_vs_256m", large / small)?;
    report.goal("gap_8vcpu_vs_1", eight / small)?;
    let modelled_us = model::gap_us(small, 128);
    report.figure(Figure::modelled("128 processors, 64 guests", "gap", "us", [modelled_us])).map(drop)
}

/// Instructions in the gap by processor.
fn count(context: &Context, report: &mut Report<'_>, what: &str, setup: &Setup) -> Result<f64> {
    context.step(&format!("update: instructions, {what}"));
    let mut hosted = Hosted::start(context, setup)?;
    let mut runs = Vec::new();
    for _ in 0..COUNTED_UPDATES {
        let told = hosted.update()?;
        runs.push(hosted.ticks(told.gap_ns)? / f64::from(setup.processors));
        tell_steps(context, what, &told);
    }
    // The first update is from the image that a loader put there.
    let value =
        report.figure(Figure::measured(format!("icount, {what}"), "gap_per_processor", INSTRUCTIONS, &*runs))?;
    median(&runs).filter(|_| value > 0.0).context("there was no gap")
}

/// Where the time goes, for whoever reads along.
fn tell_steps(context: &Context, what: &str, told: &UpdateReport) {
    let Some(first) = told.processors.first() else { return };
    let steps = [
        ("saved", first.left_ns, first.saved_ns),
        ("gone", first.saved_ns, first.gone_ns),
        ("arrived", first.gone_ns, first.arrived_ns),
        ("restored", first.arrived_ns, first.restored_ns),
        ("entered", first.restored_ns, first.entered_ns),
    ];
    let steps: Vec<String> =
        steps.iter().map(|(name, from, to)| format!("{name} {}", to.saturating_sub(*from))).collect();
    context.step(&format!("update: {what}: ns on the first processor: {}", steps.join(", ")));
}

/// A refusal's time, as the host tells it.
fn microseconds_in(reason: &str) -> Result<f64> {
    let after = reason.split("rolled back after ").nth(1).and_then(|rest| rest.split(' ').next());
    match after.and_then(|text| text.parse().ok()) {
        Some(us) => Ok(us),
        None => bail!("the update was not rolled back: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_roll_back_is_read_from_its_reason() {
        let reason = "the update was rolled back after 812 us, and guests go on in the old image: self-test";
        assert!((microseconds_in(reason).expect("a time") - 812.0).abs() < 1e-9);
        assert!(microseconds_in("another update is under way").is_err());
    }
}
