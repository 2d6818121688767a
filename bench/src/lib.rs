// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benches: the costs of Baton, measured in the lab and compared with goals.
//!
//! ```text
//! Bench (a name, goals, a function) ──► Lab, Debugger: machines with time stamps
//!          │ figures, goals reached
//!          ▼
//!        Report ──► JSON lines, or a table
//! ```
//!
//! Rules for every bench:
//! - What is compared runs in one invocation and alternates, so that a machine that slows down slows both.
//! - A figure is the median of its runs; a ratio is the median of the ratios of neighbouring runs.
//! - Instructions (`-icount shift=0`) where a budget is meant, time where a user waits. Cycles of an emulated machine
//!   compare with cycles of the same machine, and with nothing else.
//!
//! A new bench is a `static` [`Bench`] in a module of its own and a row in [`ALL`]. The figures are explained in
//! docs/bench.md.
#![warn(missing_docs)]

use std::io::Write;

use anyhow::{Result, bail};
use baton::suggest::did_you_mean;

mod blk;
mod boot;
mod bringup;
mod console;
mod context;
pub mod debugger;
mod devices;
mod direct;
mod exits;
mod faults;
mod frames;
mod guest_boot;
mod guest_panic;
mod host;
mod kvm;
mod lifecycle;
mod log;
mod neighbours;
mod net;
mod operating;
mod overcommit;
mod panic;
mod pci;
pub mod report;
mod restart;
mod rounds;
mod sched;
mod setup;
mod size;
pub mod statistics;
pub mod structure;
mod update;
mod verify;
mod vmx;
mod vpmu;

pub use context::{Context, Sizes};
use report::{Goal, Report, Style};

/// Something that can be measured.
#[derive(Debug)]
pub struct Bench {
    /// Its name on the command line and in every line it prints.
    pub name: &'static str,
    /// Its subject, in one line.
    pub about: &'static str,
    /// Its goals.
    pub goals: &'static [Goal],
    /// Measures and reports.
    pub run: fn(&Context, &mut Report<'_>) -> Result<()>,
}

/// Every bench, the quickest first.
pub static ALL: &[&Bench] = &[
    &size::BENCH,
    &structure::BENCH,
    &log::BENCH,
    &operating::BENCH,
    &pci::BENCH,
    &exits::BENCH,
    &net::BENCH,
    &blk::BENCH,
    &neighbours::BENCH,
    &overcommit::BENCH,
    &lifecycle::BENCH,
    &sched::BENCH,
    &vpmu::BENCH,
    &verify::BENCH,
    &frames::BENCH,
    &vpmu::PRECISION,
    &console::BENCH,
    &bringup::BENCH,
    &boot::BENCH,
    &guest_boot::BENCH,
    &restart::BENCH,
    &update::BENCH,
    &vmx::BENCH,
    &faults::BENCH,
    &devices::BENCH,
    &guest_panic::BENCH,
    &panic::BENCH,
];

/// Returns the benches that `name` selects: one, or `all`.
pub fn named(name: &str) -> Result<Vec<&'static Bench>> {
    if name == "all" {
        return Ok(ALL.to_vec());
    }
    if let Some(bench) = ALL.iter().find(|bench| bench.name == name) {
        return Ok(vec![bench]);
    }
    let names = || ALL.iter().map(|bench| bench.name).chain(["all"]);
    let suggestion = did_you_mean(name, names());
    let hint = if suggestion.is_empty() { "; there are ".to_owned() } else { format!("{suggestion} There are ") };
    bail!("there is no bench {name:?}{hint}{}", names().collect::<Vec<_>>().join(", "))
}

/// Runs benches one after the other and prints their figures to `out`. Returns whether every goal was met.
pub fn run(benches: &[&'static Bench], context: &Context, style: Style, out: &mut impl Write) -> Result<bool> {
    let mut are_met = true;
    for bench in benches {
        let mut report = Report::new(bench, style, out);
        (bench.run)(context, &mut report)?;
        context.clear_progress();
        are_met &= report.finish()?;
    }
    Ok(are_met)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_benches_are_unique_and_a_goals_name_stands_for_one_goal() {
        let names: BTreeSet<_> = ALL.iter().map(|bench| bench.name).collect();
        assert_eq!(names.len(), ALL.len());
        let goals = || ALL.iter().flat_map(|bench| bench.goals);
        goals().for_each(|one| assert!(goals().all(|other| one.id != other.id || one == other), "{one:?}"));
        for bench in ALL {
            let ids: BTreeSet<_> = bench.goals.iter().map(|goal| goal.id).collect();
            assert_eq!(ids.len(), bench.goals.len(), "{}", bench.name);
        }
    }

    #[test]
    fn the_error_for_a_misspelt_bench_lists_all() {
        assert_eq!(named("all").expect("all").len(), ALL.len());
        assert_eq!(named("exits").expect("one")[0].name, "exits");
        let error = named("exit").expect_err("none").to_string();
        assert!(error.contains("did you mean \"exits\"?") && error.contains("guest-boot"), "{error}");
    }
}
