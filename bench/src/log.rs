// SPDX-License-Identifier: MIT OR Apache-2.0
//! `log`: the instructions that a record of the log takes from the CPU that logs.
//!
//! A host without guests measures itself (`measure=log`) in an emulator with a time stamp counter that counts
//! instructions: the median of 101 calls of each kind, from the call to its return, in a ring that is full and
//! therefore gives up its oldest record for each new one. Nothing is printed meanwhile, as when the host runs: what the
//! UART does is not in it, and `console=none` beside `console=ttyS0` shows that.

use anyhow::{Context as _, Result, bail};
use baton::size::Size;
use lab::{Lab, What};

use super::report::{Figure, Goal, Report};
use super::setup::{COUNT_INSTRUCTIONS, HostSetup};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "log",
    about: "instructions that a record of the host's log takes from the CPU that logs",
    goals: &[GOAL],
    run,
};

/// The limit for a record. The bench `console` reports this goal, too.
pub(super) const GOAL: Goal = Goal::at_most("log_call_instructions", 300.0, INSTRUCTIONS);

const INSTRUCTIONS: &str = "instructions";
const CONSOLES: [&str; 2] = ["ttyS0", "none"];
/// The row that the goal is about: most calls in the host have one argument, and it is a name.
const TYPICAL: &str = "string";
/// Begins each figure in the host's log.
const PREFIX: &str = "log-cost: ";
const MEMORY: Size = Size::mebibytes(64);

/// Name and instructions.
type Row = (String, f64);

/// Measures the cost of records, and compares the typical one with [`GOAL`].
pub(super) fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut runs = [Vec::new(), Vec::new()];
    for run in 1..=context.runs {
        for (console, measured) in CONSOLES.iter().zip(&mut runs) {
            context.step(&format!("log: run {run} of {}, console={console}", context.runs));
            measured.push(measure(context, console)?);
        }
    }
    for (console, rows) in CONSOLES.iter().zip(&runs) {
        for (index, (name, _)) in rows.first().into_iter().flatten().enumerate() {
            let values: Vec<f64> = rows.iter().filter_map(|rows| Some(rows.get(index)?.1)).collect();
            let value = report.figure(Figure::measured(format!("console={console}"), name, INSTRUCTIONS, values))?;
            if name == TYPICAL && *console == CONSOLES[0] {
                report.goal(GOAL.id, value)?;
            }
        }
    }
    Ok(())
}

/// Boots a host that measures its log. The figures are read over the control channel: with `console=none` the host
/// prints nothing.
fn measure(context: &Context, console: &str) -> Result<Vec<Row>> {
    let options = format!("measure=log console={console}");
    let extra = COUNT_INSTRUCTIONS.map(Into::into).to_vec();
    let mut host = HostSetup { options, extra, ..HostSetup::new(MEMORY) }.start(context)?;
    host.wait(context.timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    read(&logged(&host.lab)?)
}

/// Returns the texts of all records of the log.
fn logged(lab: &Lab) -> Result<Vec<String>> {
    let mut client = lab.client()?;
    let (mut texts, mut place) = (Vec::new(), 0);
    loop {
        let (records, next) = client.log(place)?;
        if records.is_empty() {
            return Ok(texts);
        }
        texts.extend(records.into_iter().map(|record| record.text.into_owned()));
        place = next;
    }
}

fn read(texts: &[String]) -> Result<Vec<Row>> {
    let rows = texts.iter().filter_map(|text| text.strip_prefix(PREFIX)).filter(|row| *row != "done");
    let rows = rows.map(|row| {
        let parsed = row.split_once(' ').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
        parsed.with_context(|| format!("the host printed {row:?}: it and this tool are of different releases"))
    });
    let rows = rows.collect::<Result<Vec<Row>>>()?;
    if rows.iter().all(|(name, _)| name != TYPICAL) {
        bail!("the host did not measure its log: it and this tool are of different releases");
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn the_hosts_rows_are_found_among_its_lines() {
        let rows = read(&texts(&["cost: filling 1", "log-cost: literal 7", "log-cost: string 9", "log-cost: done"]));
        assert_eq!(rows.expect("rows"), [("literal".to_owned(), 7.0), ("string".to_owned(), 9.0)]);
    }

    #[test]
    fn a_host_that_logs_something_else_is_an_error() {
        assert!(read(&texts(&["log-cost: string nine"])).is_err());
        assert!(read(&texts(&["log-cost: literal 9", "log-cost: done"])).is_err());
    }
}
