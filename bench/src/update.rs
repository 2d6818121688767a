// SPDX-License-Identifier: MIT OR Apache-2.0
//! `update`: how long guests stand still while the hypervisor is replaced under them.
//!
//! | variant | measurement |
//! |---|---|
//! | `2 CPUs` | by the machine's clock, as guests see it (the longest that one of their CPUs was away) and by its report |
//! | `icount, …` | in instructions, which repeat: from the first CPU that leaves its guests to the last one back |
//! | `rolled back` | from the order to leave the guests to the last CPU back, when the new image fails |
//! | `linux to linux` | the least time that a host of stock Linux takes for kexec: no guest and no state |
//! | `128 CPUs` | modelled from the instructions of each step and the latencies of real CPUs |
//!
//! An update in which a CPU waited too long is rolled back, and guests stood still all the same: its blackout counts as
//! every other. Hosts that are updated and Linux's kexec alternate, and are compared by what is seen from outside: by
//! the guest, and by the tool.
//!
//! With instructions the emulator runs the machine's CPUs one at a time, and counts those of all. On one CPU that is
//! the path itself. On several, all instructions divided by the number of CPUs are a model of one's path: that each
//! executes as much as the others.

use anyhow::{Context as _, Result, bail};
use wire::UpdateReport;

use super::context::Build;
use super::report::{Figure, Goal, Report};
use super::restart::linux_to_linux_ms;
use super::statistics::{median, ratios};
use super::{Bench, Context};

pub(super) mod hosted;
mod model;

use hosted::{Attempt, Clock, Hosted, Setup};

const INSTRUCTIONS: &str = "instructions";
/// Updates of a real-time host, and of one with counted instructions.
const UPDATES: usize = 100;
const COUNTED_UPDATES: usize = 3;
/// Number of times that each way to fail is tried.
const FAILURES: usize = 3;

pub(super) static BENCH: Bench = Bench {
    name: "update",
    about: "how long guests stand still while the hypervisor is replaced under them, and when that fails",
    goals: &[
        Goal::at_most("gap_median_us", 1_000.0, "us"),
        Goal::at_most("gap_max_of_100_us", 5_000.0, "us"),
        Goal::at_most("gap_instructions_per_cpu", 23_500.0, INSTRUCTIONS),
        Goal::at_most("gap_8g_vs_256m", 1.1, "ratio"),
        Goal::at_most("gap_8vcpu_vs_1", 2.0, "ratio"),
        Goal::at_most("rollback_us", 10_000.0, "us"),
        Goal::at_most("gap_vs_linux_kexec", 0.001, "ratio"),
    ],
    run,
};

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    by_the_clock(context, report)?;
    roll_backs(context, report)?;
    by_instructions(context, report)
}

/// Blackouts of one host's updates, in microseconds.
#[derive(Default)]
struct Blackouts {
    /// As the host states them; those of refused updates, which were rolled back, are among them.
    stated: Vec<f64>,
    /// As the guest sees them.
    seen: Vec<f64>,
    /// The guest's pause just before, without an update.
    rest: Vec<f64>,
    /// Number of updates that were refused because a CPU waited too long.
    refused: usize,
}

/// As many CPUs as the lab has cores: hosts that are updated and Linux's kexec in turn.
fn by_the_clock(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (mut all, mut medians, mut linux) = (Blackouts::default(), Vec::new(), Vec::new());
    for run in 1..=context.runs {
        let one = updates(context, UPDATES.div_ceil(context.runs))?;
        medians.push(median(&one.seen).context("there were no updates")? / 1e3);
        all.stated.extend(one.stated);
        all.seen.extend(one.seen);
        all.rest.extend(one.rest);
        all.refused += one.refused;
        context.step(&format!("update: run {run} of {}, Linux to Linux", context.runs));
        linux.push(linux_to_linux_ms(context)?);
    }
    report.figure(Figure::measured("2 CPUs", "away_without_an_update", "us", all.rest))?;
    report.figure(Figure::measured("2 CPUs", "blackout_seen_by_guests", "us", all.seen))?;
    report.figure(Figure::measured("2 CPUs", "updates_refused", "updates", [all.refused as f64]))?;
    let max = all.stated.iter().copied().fold(0.0, f64::max);
    let median_us = report.figure(Figure::measured("2 CPUs", "blackout", "us", all.stated))?;
    report.figure(Figure::measured("2 CPUs", "blackout_max_of_100", "us", [max]))?;
    report.goal("gap_median_us", median_us)?;
    report.goal("gap_max_of_100_us", max)?;
    report.figure(Figure::measured("linux to linux", "blackout", "ms", &*linux))?;
    let quotients = ratios(&medians, &linux);
    let quotient =
        report.figure(Figure::measured("seen by guests/linux to linux", "blackout_ratio", "ratio", quotients))?;
    report.goal("gap_vs_linux_kexec", quotient)
}

/// Updates one host this many times.
fn updates(context: &Context, times: usize) -> Result<Blackouts> {
    let mut hosted = Hosted::start(context, &Setup { cpus: 2, vcpus: 2, ..Setup::default() })?;
    let mut found = Blackouts::default();
    for update in 1..=times {
        context.step(&format!("update: {update} of {times}"));
        found.rest.push(hosted.longest_away_us()?);
        match hosted.attempt()? {
            Attempt::Updated(report) => {
                show_steps(context, "2 CPUs", &report);
                found.stated.push(report.blackout_ns as f64 / 1e3);
            }
            Attempt::WaitedTooLong(us) => {
                found.refused += 1;
                found.stated.push(us);
            }
        }
        found.seen.push(hosted.longest_away_us()?);
    }
    if found.refused == times {
        bail!("all {times} updates were refused because a CPU waited too long: run fewer programs beside the bench");
    }
    Ok(found)
}

/// Measures each fault that is noticed without a timeout, which would be 5 ms on an idle machine.
fn roll_backs(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut worst = 0.0_f64;
    for fault in ["panic:restore", "exception:restore", "damage:restore", "panic:meet"] {
        context.step(&format!("update: rolled back after {fault}"));
        let options = format!("tsc=skip selftest=update:{fault}");
        // The image that fails is the test image; the one that takes its guests back is the one that operators run.
        let builds = [Build::Shipped, Build::WithFaultPoints];
        let setup = Setup { cpus: 2, vcpus: 2, options, builds, ..Setup::default() };
        let hosted = Hosted::start(context, &setup)?;
        let runs = (0..FAILURES).map(|_| hosted.rolled_back_us()).collect::<Result<Vec<f64>>>()?;
        worst = worst.max(report.figure(Figure::measured(format!("rolled back, {fault}"), "blackout", "us", runs))?);
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
        let setup = Setup { cpus: count_of, vcpus: count_of, ..counted.clone() };
        count(context, report, &format!("{count_of} vCPUs"), &setup)?;
    }
    let eight = count(context, report, "8 vCPUs", &Setup { cpus: 8, vcpus: 8, ..counted })?;
    if eight > small {
        report.modelled_goal("gap_instructions_per_cpu", eight)?;
    } else {
        report.goal("gap_instructions_per_cpu", small)?;
    }
    report.goal("gap_8g_vs_256m", large / small)?;
    report.modelled_goal("gap_8vcpu_vs_1", eight / small)?;
    let modelled_us = model::blackout_us(small, 128);
    report.figure(Figure::modelled("128 CPUs, 64 guests", "blackout", "us", [modelled_us])).map(drop)
}

/// Instructions in the blackout: measured of one CPU; of several, all of them shared by their number, which is a model.
fn count(context: &Context, report: &mut Report<'_>, what: &str, setup: &Setup) -> Result<f64> {
    context.step(&format!("update: instructions, {what}"));
    let mut hosted = Hosted::start(context, setup)?;
    let mut runs = Vec::new();
    for _ in 0..COUNTED_UPDATES {
        let Attempt::Updated(update) = hosted.attempt()? else {
            bail!("an update was refused on a machine that counts instructions, where nothing else takes time");
        };
        runs.push(hosted.ticks(update.blackout_ns)? / f64::from(setup.cpus));
        show_steps(context, what, &update);
    }
    // The first update is from the image that a loader put there.
    let figure = Figure::measured(format!("icount, {what}"), "blackout_per_cpu", INSTRUCTIONS, &*runs);
    let value = report.figure(Figure { is_modelled: setup.cpus > 1, ..figure })?;
    median(&runs).filter(|_| value > 0.0).context("there was no blackout")
}

/// Shows the parts of the time as a step of the bench's progress.
fn show_steps(context: &Context, what: &str, update: &UpdateReport) {
    let Some(first) = update.cpus.first() else { return };
    let steps = [
        ("saved", first.left_ns, first.saved_ns),
        ("gone", first.saved_ns, first.gone_ns),
        ("arrived", first.gone_ns, first.arrived_ns),
        ("restored", first.arrived_ns, first.restored_ns),
        ("entered", first.restored_ns, first.entered_ns),
    ];
    let steps: Vec<String> =
        steps.iter().map(|(name, from, to)| format!("{name} {}", to.saturating_sub(*from))).collect();
    context.step(&format!("update: {what}: ns on the first CPU: {}", steps.join(", ")));
}

/// Reads the time of a roll-back from its reason.
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
