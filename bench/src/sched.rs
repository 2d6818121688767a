// SPDX-License-Identifier: MIT OR Apache-2.0
//! `sched`: the cost of a switch from one vCPU to another on one CPU, and the fairness of the CPU's shares.
//!
//! - A switch: two vCPUs of the guest `turns` on one CPU that both compute. A sample is the time
//!   from the last instruction of the one to the first of the other when a slice ends, with `-icount shift=0` in
//!   instructions: everything in between, the timer's interrupt and its exit, the scheduler, both sides' extended
//!   state, and the entry; and up to one turn of the guest's loop on either side.
//! - Fairness: four guests of weights 1:1:2:4 on one CPU count the work they get done in the same second of the
//!   wall clock. The error is the largest distance of a share from its weight's share, relative to the latter. The
//!   emulator's clock advances by 8 ns with each instruction (`-icount shift=3`), so that other work of the machine it
//!   runs on does not count, and a second is 125 million instructions.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::config::Guest;

use super::report::{Figure, Goal, Report};
use super::{Bench, Context};

pub(super) mod hosted;

use hosted::{run_guests, turns};

const INSTRUCTIONS: &str = "instructions";
const RATIO: &str = "ratio";
/// Samples of a switch in one run.
const SAMPLES: u32 = 200;
/// Seconds that each guest counts in: some guests may not count in all of the first and the last.
const SECONDS: u32 = 2;
const WEIGHTS: [(&str, u32); 4] = [("a", 1), ("b", 1), ("c", 2), ("d", 4)];
/// Longest time for one machine.
const TIMEOUT: Duration = Duration::from_secs(180);

pub(super) static BENCH: Bench = Bench {
    name: "sched",
    about: "instructions of a vCPU's switch, and the fairness of four that share a CPU",
    goals: &[
        Goal::at_most("vcpu_switch_instructions", 1500.0, INSTRUCTIONS),
        Goal::at_most("fairness_error", 0.02, RATIO),
    ],
    run,
};

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (mut switches, mut shares) = (Vec::new(), Vec::new());
    for run in 1..=context.runs {
        context.step(&format!("sched: a switch, run {run} of {}", context.runs));
        switches.push(switch(context)?);
        context.step(&format!("sched: shares of 1:1:2:4, run {run} of {}", context.runs));
        shares.push(share(context)?);
    }
    let value = report.figure(Figure::measured("icount", "vcpu_switch", INSTRUCTIONS, switches))?;
    report.goal("vcpu_switch_instructions", value)?;
    for (index, (name, weight)) in WEIGHTS.iter().enumerate() {
        let of_this: Vec<f64> = shares.iter().map(|shares| shares[index]).collect();
        report.figure(Figure::measured("icount", format!("share_{name}_weight_{weight}"), RATIO, of_this))?;
    }
    let errors: Vec<f64> = shares.iter().map(|shares| fairness_error(shares)).collect();
    let value = report.figure(Figure::measured("icount", "fairness_error", RATIO, errors))?;
    report.goal("fairness_error", value)
}

/// Two vCPUs of one guest take turns.
fn switch(context: &Context) -> Result<f64> {
    let guest = Guest { vcpus: 2, ..turns(context, "turns", &format!("do=switch n={SAMPLES}"))? };
    let consoles = run_guests(context, vec![guest], "0", "mitigations=off", TIMEOUT)?;
    median_switch(&consoles["turns"])
}

pub(super) fn median_switch(console: &str) -> Result<f64> {
    let row = console.lines().find_map(|line| line.trim().strip_prefix("turns: switch "));
    let median = row.and_then(|row| row.split(' ').find_map(|field| field.strip_prefix("median=")?.parse().ok()));
    median.with_context(|| format!("the guest `turns` did not print what a switch takes:\n{console}"))
}

/// Four guests of different weight compute; their shares, in the order of [`WEIGHTS`].
fn share(context: &Context) -> Result<Vec<f64>> {
    let guests = WEIGHTS.map(|(name, weight)| {
        anyhow::Ok(Guest { weight, ..turns(context, name, &format!("do=share seconds={SECONDS}"))? })
    });
    let guests = guests.into_iter().collect::<Result<Vec<_>>>()?;
    shares(&run_guests(context, guests, "3", "mitigations=off", TIMEOUT)?)
}

/// Shares in the first second that every guest has counted in.
fn shares(consoles: &BTreeMap<String, String>) -> Result<Vec<f64>> {
    let rows: Vec<BTreeMap<u64, f64>> = consoles.values().map(|console| seconds(console)).collect();
    let common = rows.first().into_iter().flat_map(|row| row.keys());
    let Some(second) = common.copied().find(|second| rows.iter().all(|row| row.contains_key(second))) else {
        bail!("there is no second in which all of {:?} counted: {consoles:#?}", consoles.keys());
    };
    let counts: Vec<f64> = rows.iter().map(|row| row[&second]).collect();
    let sum: f64 = counts.iter().sum();
    Ok(counts.iter().map(|count| count / sum).collect())
}

fn seconds(console: &str) -> BTreeMap<u64, f64> {
    let row = |line: &str| {
        let (second, rounds) = line.trim().strip_prefix("turns: second=")?.split_once(" rounds=")?;
        Some((second.parse().ok()?, rounds.parse().ok()?))
    };
    console.lines().filter_map(row).collect()
}

fn fairness_error(shares: &[f64]) -> f64 {
    let total: u32 = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let error = |(share, (_, weight)): (&f64, &(&str, u32))| {
        let due = f64::from(*weight) / f64::from(total);
        (share - due).abs() / due
    };
    shares.iter().zip(&WEIGHTS).map(error).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(rows: &[(u64, u64)]) -> String {
        rows.iter().map(|(second, rounds)| format!("turns: second={second} rounds={rounds}\r\n")).collect()
    }

    #[test]
    fn shares_are_of_a_second_that_all_have_counted_in() {
        let rows = [[(7, 9), (8, 1)], [(8, 1), (9, 5)], [(7, 3), (8, 2)], [(8, 4), (9, 9)]];
        let consoles = WEIGHTS.iter().zip(rows).map(|((name, _), rows)| ((*name).to_owned(), console(&rows))).collect();
        let shares = shares(&consoles).unwrap();
        assert_eq!(shares, [0.125, 0.125, 0.25, 0.5]);
        assert_eq!(fairness_error(&shares), 0.0);
    }

    #[test]
    fn the_error_is_the_largest_and_relative() {
        let error = fairness_error(&[0.125, 0.13, 0.25, 0.495]);
        assert!((error - 0.04).abs() < 1e-9, "{error}");
    }

    #[test]
    fn guests_that_never_counted_together_are_an_error() {
        let consoles = [("a", console(&[(1, 1)])), ("b", console(&[(2, 1)]))];
        let consoles = consoles.map(|(name, text)| (name.to_owned(), text)).into_iter().collect();
        assert!(shares(&consoles).unwrap_err().to_string().contains("no second"));
    }

    #[test]
    fn a_switch_is_the_median_of_its_row() {
        assert_eq!(median_switch("x\nturns: switch min=900 median=1200 n=200\r\n").unwrap(), 1200.0);
        assert!(median_switch("turns: switch WRONG: there is no second CPU").is_err());
    }
}
