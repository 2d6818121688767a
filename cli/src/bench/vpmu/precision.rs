// SPDX-License-Identifier: MIT OR Apache-2.0
//! `vpmu-precision`: how true a profile is that Linux's own perf takes in a guest, and what it costs the guest.
//!
//! The guest of `guests/perf` runs the program `shares`, whose functions' shares the program itself takes by the clock, alone and under
//! `perf record -e cycles`, with a sample for each million cycles. With `-icount shift=0` a cycle is an instruction and a
//! nanosecond, so that is a thousand samples a second, and what the rest of the emulator's machine does does not count.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bundle::Pmu;

use super::super::exits::Clock;
use super::super::host::{Hosted, Plan};
use super::super::report::{Figure, Goal, Report};
use super::super::{Bench, Context};
use super::POLICIES;
use crate::size::Size;

const RATIO: &str = "ratio";
/// Cycles for each sample.
const PERIOD: u64 = 1_000_000;
/// How long the program computes, in milliseconds of the guest's.
const COMPUTES_MS: u64 = 3000;
const TIMEOUT: Duration = Duration::from_secs(600);
/// The guest's last line.
const DONE: &str = "perf: done";
const FUNCTIONS: [&str; 3] = ["half", "third", "fifth"];

pub(in crate::bench) static PRECISION: Bench = Bench {
    name: "vpmu-precision",
    about: "a profile by a guest's own perf: the shares of functions, samples that are missing, what it costs",
    goals: &[
        Goal::at_most("share_error", 0.01, RATIO),
        Goal::at_least("samples_share", 0.99, RATIO),
        Goal::at_most("perf_overhead", 0.02, RATIO),
    ],
    run,
};

/// What one guest has found.
#[derive(Debug, PartialEq)]
struct Profile {
    /// The largest distance of a function's share of the samples from its share of the time.
    share_error: f64,
    /// Samples, of those that there should be.
    samples_share: f64,
    /// By how much less is computed in a second.
    overhead: f64,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut found: [Vec<Profile>; 2] = Default::default();
    for run in 1..=context.runs {
        for (policy, found) in POLICIES.iter().zip(&mut found) {
            context.step(&format!("vpmu-precision: {policy}, run {run} of {}", context.runs));
            found.push(profile(context, policy)?);
        }
    }
    for (policy, found) in POLICIES.iter().zip(&found) {
        let figure = |metric: &str, of: fn(&Profile) -> f64| {
            Figure::measured(format!("amd {policy} icount"), metric, RATIO, found.iter().map(of).collect::<Vec<_>>())
        };
        let error = report.figure(figure("share_error", |profile| profile.share_error))?;
        let samples = report.figure(figure("samples_share", |profile| profile.samples_share))?;
        let overhead = report.figure(figure("perf_overhead", |profile| profile.overhead))?;
        if *policy == "direct" {
            report.goal("share_error", error)?;
            report.goal("samples_share", samples)?;
            report.goal("perf_overhead", overhead)?;
        }
    }
    Ok(())
}

fn profile(context: &Context, policy: &str) -> Result<Profile> {
    let plan = Plan {
        kernel: context.made("target/kernels/default/vmlinuz")?,
        initrd: Some(context.made("target/guests/perf.cpio")?),
        cmdline: format!("console=ttyS0 quiet nmi_watchdog=0 perf=bare,record ms={COMPUTES_MS} period={PERIOD}"),
        memory: Size::mebibytes(384),
        pmu: Pmu::Amd,
        options: format!("vpmu={policy}"),
    };
    let mut hosted = Hosted::start_within(context, &plan, TIMEOUT, |_| Clock::Instructions.arguments())?;
    let _client = hosted.start_guest()?;
    let (_, lines) = hosted.collect_lines(DONE)?;
    read(&lines).with_context(|| format!("the guest of guests/perf says otherwise:\n{}", lines.join("\n")))
}

/// What the guest's lines say.
fn read(lines: &[String]) -> Option<Profile> {
    let of = |task: &str| {
        let prefix = format!("perf: {task}: ");
        lines.iter().filter_map(move |line| line.trim().strip_prefix(&*prefix).map(str::to_owned)).collect::<Vec<_>>()
    };
    let (bare, record) = (of("bare"), of("record"));
    let clock = |lines: &[String], name: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix("shares: "))?;
        line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')?.parse::<f64>().ok())
    };
    let counts = record.iter().find(|line| line.starts_with("period "))?;
    let count = |name: &str| {
        let mut words = counts.split(' ').skip_while(|word| *word != name);
        words.nth(1)?.parse::<f64>().ok()
    };
    let cycles = record.iter().find_map(|line| {
        let (number, unit) = line.trim().split_once(' ')?;
        unit.trim_start().starts_with("cycles").then(|| number.replace(',', ""))
    })?;
    let cycles: f64 = cycles.parse().ok()?;
    let met = FUNCTIONS.iter().map(|name| count(name)).collect::<Option<Vec<f64>>>()?;
    let all: f64 = met.iter().sum();
    let errors = FUNCTIONS.iter().zip(&met).map(|(name, met)| Some((met / all - clock(&record, name)?).abs()));
    let rate = |lines: &[String]| Some(clock(lines, "rounds")? / clock(lines, "ms")?);
    Some(Profile {
        share_error: errors.collect::<Option<Vec<f64>>>()?.into_iter().fold(0.0, f64::max),
        samples_share: count("samples")? / (cycles / count("period")?),
        overhead: 1.0 - rate(&record)? / rate(&bare)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_held_against_the_programs_own_clock() {
        let lines = [
            "perf: bare: shares: half=0.5000 third=0.3000 fifth=0.2000 rounds=1000 ms=1000",
            "perf: record: shares: half=0.5100 third=0.3000 fifth=0.1900 rounds=990 ms=1000",
            "perf: record:         2000000000      cycles                                ",
            "perf: record: period 1000000 samples 1990 half 1000 third 600 fifth 400",
        ];
        let profile = read(&lines.map(str::to_owned)).expect("all is there");
        assert!((profile.share_error - 0.01).abs() < 1e-9 && (profile.samples_share - 0.995).abs() < 1e-9);
        assert!((profile.overhead - 0.01).abs() < 1e-9);
        assert_eq!(
            read(&lines[1..].iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()),
            None,
            "nothing to compare with"
        );
    }
}
