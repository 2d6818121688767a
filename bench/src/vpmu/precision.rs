// SPDX-License-Identifier: MIT OR Apache-2.0
//! `vpmu-precision`: how true a profile is that Linux's own perf takes in a guest, and what it costs the guest.
//!
//! | scenario | set-up |
//! |---|---|
//! | `alone` | a guest has the machine's CPU; the program runs without perf, too |
//! | `shared` | a guest with Intel's registers and one with AMD's take turns on the CPU, both profiled at the same time |
//! | `updates` | the host is replaced fifty times while the guest is profiled |
//!
//! Each guest of `guests/perf` runs the program `shares`; its functions do 5, 3 and 2 parts of the same work, under
//! `perf record -e cycles`, with a sample for each million cycles. With `-icount shift=0` a cycle is an instruction and
//! a nanosecond, so that is a thousand samples a second, and what the rest of the emulator's machine does does not
//! count. 30,000 samples and more give a share of one half a standard error of 0.003: with a tenth of that, sampling
//! alone would miss `share_error` now and then.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bundle::Pmu;

use super::super::report::{Figure, Goal, Report};
use super::super::{Bench, Context};
use super::POLICIES;

mod hosted;
mod profile;

use hosted::{Setup, run_setup};
use profile::Profile;

const RATIO: &str = "ratio";
/// Live updates during a profile.
const UPDATES: usize = 50;
const INTEL: (&str, Pmu) = ("intel", Pmu::Intel);
const AMD: (&str, Pmu) = ("amd", Pmu::Amd);
/// Tasks of guests/perf and how long the program computes, in milliseconds of the guest's clock: which runs on while
/// another guest has the CPU, or the host is replaced.
const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "alone", guests: &[INTEL], tasks: "bare,record", computes_ms: 30_000, updates: 0 },
    Scenario { name: "alone", guests: &[AMD], tasks: "bare,record", computes_ms: 30_000, updates: 0 },
    Scenario { name: "shared", guests: &[INTEL, AMD], tasks: "record", computes_ms: 60_000, updates: 0 },
    Scenario { name: "updates", guests: &[INTEL], tasks: "record", computes_ms: 60_000, updates: UPDATES },
    Scenario { name: "updates", guests: &[AMD], tasks: "record", computes_ms: 60_000, updates: UPDATES },
];

pub(crate) static PRECISION: Bench = Bench {
    name: "vpmu-precision",
    about: "a profile by a guest's own perf: the shares of functions, samples that are missing, what it costs",
    goals: &[
        Goal::at_most("share_error", 0.01, RATIO),
        Goal::at_least("samples_share", 0.99, RATIO),
        Goal::at_most("perf_overhead", 0.02, RATIO),
    ],
    run,
};

/// The guests that are profiled, and the updates meanwhile.
struct Scenario {
    name: &'static str,
    guests: &'static [(&'static str, Pmu)],
    tasks: &'static str,
    computes_ms: u64,
    updates: usize,
}

/// A guest's profiles by scenario, vendor and policy.
type Found = BTreeMap<(&'static str, &'static str, &'static str), Vec<Profile>>;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut found = Found::new();
    for run in 1..=context.runs {
        for scenario in &SCENARIOS {
            for policy in policies(context) {
                let names: Vec<&str> = scenario.guests.iter().map(|guest| guest.0).collect();
                let (guests, name, runs) = (names.join(" and "), scenario.name, context.runs);
                context.step(&format!("vpmu-precision: {guests}, {name}, {policy}, run {run} of {runs}"));
                profile_all(context, scenario, policy, &mut found)?;
            }
        }
    }
    report_all(report, &found)
}

/// Goals are held against the last alone.
fn policies(context: &Context) -> &'static [&'static str] {
    if context.sizes.quick { &POLICIES[1..] } else { &POLICIES }
}

fn profile_all(context: &Context, scenario: &Scenario, policy: &'static str, found: &mut Found) -> Result<()> {
    let setup = Setup {
        guests: scenario.guests,
        tasks: scenario.tasks,
        computes_ms: scenario.computes_ms,
        policy,
        updates: scenario.updates,
    };
    let consoles = run_setup(context, &setup)?;
    for (vendor, _) in scenario.guests {
        let lines: Vec<String> = consoles[*vendor].lines().map(str::to_owned).collect();
        let profile = Profile::read(&lines);
        let profile =
            profile.with_context(|| format!("the output of guests/perf lacks a line:\n{}", lines.join("\n")))?;
        found.entry((scenario.name, vendor, policy)).or_default().push(profile);
    }
    Ok(())
}

/// Every figure; the goals have the worst of all scenarios and vendors, with `direct`.
fn report_all(report: &mut Report<'_>, found: &Found) -> Result<()> {
    let (mut error, mut samples, mut overhead) = (0.0_f64, f64::MAX, 0.0_f64);
    for ((scenario, vendor, policy), profiles) in found {
        let mut figure = |metric: &str, of: &dyn Fn(&Profile) -> Option<f64>| {
            let runs: Vec<f64> = profiles.iter().filter_map(of).collect();
            let is_there = !runs.is_empty();
            let figure = Figure::measured(format!("{vendor} {policy} {scenario}"), metric, RATIO, runs);
            is_there.then(|| report.figure(figure)).transpose()
        };
        let shares = figure("share_error", &|profile| Some(profile.share_error))?;
        let taken = figure("samples_share", &|profile| Some(profile.samples_share))?;
        let cost = figure("perf_overhead", &|profile| profile.overhead)?;
        // With the same policy, alone: what a round of the program's takes is always the same.
        let alone = found.get(&("alone", vendor, policy)).and_then(|profiles| profiles.first());
        figure("cycles_per_round_vs_alone", &|profile| Some(profile.cycles_per_round / alone?.cycles_per_round))?;
        if *policy == "direct" {
            error = error.max(shares.unwrap_or(f64::MAX));
            samples = samples.min(taken.unwrap_or(0.0));
            overhead = overhead.max(cost.unwrap_or(0.0));
        }
    }
    report.goal("share_error", error)?;
    report.goal("samples_share", samples)?;
    report.goal("perf_overhead", overhead)
}
