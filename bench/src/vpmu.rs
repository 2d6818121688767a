// SPDX-License-Identifier: MIT OR Apache-2.0
//! `vpmu`: the cost of a guest's accesses to its performance counters, and of its switches, by either policy.
//!
//! - Rows: the guest `counters` times each access a thousand times; four counters count meanwhile. `vpmu=reprogram` and
//!   `vpmu=direct` alternate; a ratio is between neighbouring runs.
//! - A switch: as `sched` has it, two vCPUs of one guest on one CPU: without counters, with counters
//!   that none uses, and with four that count on each.

use std::time::Duration;

use anyhow::Result;
use baton::config::Guest;
use baton::size::Size;
use bundle::Pmu;

use super::exits::{Clock, measure_plan};
use super::host::Plan;
use super::report::{Figure, Goal, Report};
use super::sched::hosted::{run_guests, turns};
use super::sched::median_switch;
use super::{Bench, Context};

mod hooks;
mod precision;

pub(super) use precision::PRECISION;

const INSTRUCTIONS: &str = "instructions";
/// The baseline first.
const POLICIES: [&str; 2] = ["reprogram", "direct"];
/// The number of times the guest does each thing.
const REPETITIONS: u32 = 1000;
/// Samples of a switch.
const SAMPLES: u32 = 200;
/// Counters that count on each vCPU while switches are timed.
const COUNTERS: u32 = 4;
const TIMEOUT: Duration = Duration::from_secs(180);
/// One access each, of which the most expensive is held against the goal.
const ACCESSES: [&str; 8] = [
    "rdpmc",
    "read_select",
    "write_counter",
    "stop_general",
    "start_general",
    "read_fixed_control",
    "stop_fixed",
    "start_fixed",
];

pub(super) static BENCH: Bench = Bench {
    name: "vpmu",
    about: "a guest's accesses to its performance counters and its switches with them, by both policies",
    goals: &[
        Goal::at_most("intercepted_access_instructions", 600.0, INSTRUCTIONS),
        Goal::at_most("switch_with_pmu_instructions", 300.0, INSTRUCTIONS),
        Goal::at_most("switch_without_pmu_instructions", 0.0, INSTRUCTIONS),
    ],
    run,
};

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    for (vendor, pmu) in [("intel", Pmu::Intel), ("amd", Pmu::Amd)] {
        for clock in [Clock::Instructions, Clock::Cycles] {
            rows(context, report, vendor, pmu, clock)?;
        }
    }
    switches(context, report)?;
    hooks::switches(context, report)
}

/// Each row by both policies, and the ratio of the two.
fn rows(context: &Context, report: &mut Report<'_>, vendor: &str, pmu: Pmu, clock: Clock) -> Result<()> {
    let mut found = [Vec::new(), Vec::new()];
    for run in 1..=context.runs {
        for (policy, found) in POLICIES.iter().zip(&mut found) {
            context.step(&format!("vpmu: {vendor}, {policy}, {}, run {run} of {}", clock.unit(), context.runs));
            let plan = Plan {
                kernel: context.made("target/guests/counters.elf")?,
                initrd: None,
                cmdline: format!("do=rows n={REPETITIONS}"),
                memory: Size::mebibytes(16),
                pmu,
                options: format!("mitigations=off vpmu={policy}"),
            };
            found.push(measure_plan(context, clock, &plan)?.rows);
        }
    }
    let mut most: f64 = 0.0;
    for name in found[0].first().map(super::exits::Rows::names).unwrap_or_default() {
        let values =
            found.each_ref().map(|runs| runs.iter().filter_map(|rows| rows.round_trip(&name)).collect::<Vec<_>>());
        if values[0].is_empty() {
            continue;
        }
        let variant = |policy: &str| format!("{vendor} {policy} {}", clock.variant());
        for (policy, values) in POLICIES.iter().zip(&values) {
            let value = report.figure(Figure::measured(variant(policy), &*name, clock.unit(), values.clone()))?;
            if *policy == "direct" && ACCESSES.contains(&&*name) {
                most = most.max(value);
            }
        }
        let ratios: Vec<f64> = values[0].iter().zip(&values[1]).map(|(slow, quick)| slow / quick.max(1.0)).collect();
        report.figure(Figure::measured(variant("reprogram/direct"), &*name, "ratio", ratios))?;
    }
    if clock == Clock::Instructions && pmu == Pmu::Intel {
        report.goal("intercepted_access_instructions", most)?;
    }
    Ok(())
}

/// A switch without counters, with unused ones, and with ones that count, by both policies.
fn switches(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let variants = [
        ("no counters", Pmu::Off, 0, "direct"),
        ("unused counters", Pmu::Amd, 0, "direct"),
        ("counting, reprogram", Pmu::Amd, COUNTERS, "reprogram"),
        ("counting, direct", Pmu::Amd, COUNTERS, "direct"),
    ];
    let mut found: [Vec<f64>; 4] = Default::default();
    for run in 1..=context.runs {
        for ((name, pmu, counters, policy), found) in variants.iter().zip(&mut found) {
            context.step(&format!("vpmu: a switch, {name}, run {run} of {}", context.runs));
            let cmdline = format!("do=switch n={SAMPLES} counters={counters}");
            let guest = Guest { vcpus: 2, pmu: *pmu, ..turns(context, "turns", &cmdline)? };
            let consoles = run_guests(context, vec![guest], "0", &format!("mitigations=off vpmu={policy}"), TIMEOUT)?;
            found.push(median_switch(&consoles["turns"])?);
        }
    }
    let beyond = |at: usize| found[at].iter().zip(&found[0]).map(|(with, without)| with - without).collect::<Vec<_>>();
    let (unused, reprogram, direct) = (beyond(1), beyond(2), beyond(3));
    report.figure(Figure::measured("icount", "switch without counters", INSTRUCTIONS, found[0].clone()))?;
    let unused = report.figure(Figure::measured("icount", "beyond: unused counters", INSTRUCTIONS, unused))?;
    report.figure(Figure::measured("icount", "beyond: four count, reprogram", INSTRUCTIONS, reprogram))?;
    let direct = report.figure(Figure::measured("icount", "beyond: four count, direct", INSTRUCTIONS, direct))?;
    report.goal("switch_with_pmu_instructions", direct)?;
    report.goal("switch_without_pmu_instructions", unused)
}
