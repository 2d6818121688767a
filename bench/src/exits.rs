// SPDX-License-Identifier: MIT OR Apache-2.0
//! `exits`: the cost of a round trip from guest to host and back.
//!
//! The guest `exits` times each kind of exit with its own time stamp counter (guests/README.md) under Baton twice over:
//! with `-icount shift=0`, where the counter advances by one with every instruction that the machine executes, guest's
//! and host's alike, so that a row is the number of instructions and repeats exactly; and without it, where it is the
//! counter of the machine the emulator runs on. The row `empty` (the timing itself) is subtracted. Instructions are
//! counted with `mitigations=off`, for which the goals are, and with `mitigations=auto` beside it.
//!
//! With icount the machine's local APIC is the memory-mapped one: QEMU 10's emulated x2APIC ends the emulator with "Bad
//! icount read". The guest's x2APIC is Baton's, and is there in both.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context as _, Result};
use baton::size::Size;
use bundle::Pmu;

use super::host::{Hosted, Plan};
use super::report::{Figure, Goal, Report};
use super::setup::COUNT_INSTRUCTIONS;
use super::{Bench, Context};

mod rows;

pub(super) use rows::Rows;

/// The number of times the guest does each thing.
const REPETITIONS: u32 = 1000;
/// The guest's last line.
const DONE: &str = "exits: done";

/// The time limit of the guest, which needs some seconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(180);
const INSTRUCTIONS: &str = "instructions";

/// Each goal and the row that is held against it.
const ROW_OF_GOAL: [(&str, &str); 4] = [
    ("cpuid_exit_instructions", "cpuid"),
    ("port_exit_instructions", "port"),
    ("mmio_exit_instructions", "mmio"),
    ("self_ipi_instructions", "self_ipi"),
];

/// Way in which the guest is run.
struct Variant {
    name: &'static str,
    clock: Clock,
    /// The host's options.
    options: &'static str,
    /// Its rows are held against the goals.
    is_judged: bool,
}

pub(super) const OFF: &str = "mitigations=off";
/// The first two count instructions, side by side.
const VARIANTS: [Variant; 3] = [
    Variant { name: OFF, clock: Clock::Instructions, options: OFF, is_judged: true },
    Variant { name: "mitigations=auto", clock: Clock::Instructions, options: "mitigations=auto", is_judged: false },
    Variant { name: "host clock, mitigations=off", clock: Clock::Cycles, options: OFF, is_judged: false },
];
/// The costs of mitigations=auto that an emulator does not show.
const LACKING: &str = "exits: mitigations=auto here is VERW, cleared registers and a filled return stack; QEMU has no \
                       SPEC_CTRL, no IBPB and no Automatic IBRS; an instruction count does not show what a barrier \
                       costs";

pub(super) static BENCH: Bench = Bench {
    name: "exits",
    about: "round trips from guest to host and back: instructions, and cycles of the emulator's machine",
    goals: &[
        Goal::at_most("cpuid_exit_instructions", 400.0, INSTRUCTIONS),
        Goal::at_most("port_exit_instructions", 600.0, INSTRUCTIONS),
        Goal::at_most("mmio_exit_instructions", 1000.0, INSTRUCTIONS),
        Goal::at_most("self_ipi_instructions", 1200.0, INSTRUCTIONS),
    ],
    run,
};

/// The unit of the machine's time stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// An instruction.
    Instructions,
    /// A cycle of the machine that the emulator runs on.
    Cycles,
}

/// One run of the guest.
pub(super) struct Measured {
    /// Medians of the round trips.
    pub rows: Rows,
    /// The counter's frequency.
    pub tsc_hz: u64,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut all = VARIANTS.map(|variant| (variant, Vec::new()));
    for run in 1..=context.runs {
        for (variant, measured) in &mut all {
            context.step(&format!("exits: run {run} of {}, {}", context.runs, variant.name));
            measured.push(measure_with(context, variant.clock, variant.options)?.rows);
        }
    }
    for (variant, runs) in &all {
        let goals = if variant.is_judged { &ROW_OF_GOAL[..] } else { &[] };
        report_rows(context, report, (variant.name, variant.clock.unit()), runs, goals)?;
    }
    context.note(LACKING);
    Ok(())
}

/// Reports the rows of a variant's runs, and holds them against these goals.
pub(super) fn report_rows(
    context: &Context,
    report: &mut Report<'_>,
    (variant, unit): (&str, &'static str),
    runs: &[Rows],
    row_of_goal: &[(&str, &str)],
) -> Result<()> {
    let timing = runs.iter().map(Rows::empty).collect::<Vec<f64>>();
    report.figure(Figure::measured(variant, "timing_itself", unit, timing))?;
    for name in runs.first().map(Rows::names).unwrap_or_default() {
        let values: Vec<f64> = runs.iter().filter_map(|rows| rows.round_trip(&name)).collect();
        if let Some(rows) = runs.iter().find(|rows| rows.round_trip(&name).is_none()) {
            context.note(&format!("{variant}: a run has no row {name:?}: {}", rows.reason(&name)));
        }
        if values.is_empty() {
            continue;
        }
        let value = report.figure(Figure::measured(variant, &*name, unit, values))?;
        for (goal, _) in row_of_goal.iter().filter(|(_, row)| *row == name) {
            report.goal(goal, value)?;
        }
    }
    Ok(())
}

/// Runs the guest once, with mitigations off.
pub(super) fn measure(context: &Context, clock: Clock) -> Result<Measured> {
    measure_with(context, clock, OFF)
}

fn measure_with(context: &Context, clock: Clock, options: &str) -> Result<Measured> {
    measure_plan(context, clock, &plan(context, options)?)
}

/// Returns the guest, on a host with these options.
pub(super) fn plan(context: &Context, options: &str) -> Result<Plan> {
    Ok(Plan {
        kernel: context.made("target/guests/exits.elf")?,
        initrd: None,
        cmdline: format!("n={REPETITIONS}"),
        memory: Size::mebibytes(64),
        pmu: Pmu::Off,
        options: options.to_owned(),
    })
}

/// Runs a guest that prints rows as `exits` does.
pub(super) fn measure_plan(context: &Context, clock: Clock, plan: &Plan) -> Result<Measured> {
    measure_on(Hosted::start(context, plan, |_| clock.arguments())?)
}

/// The same on a machine that has been started.
pub(super) fn measure_on(mut hosted: Hosted) -> Result<Measured> {
    let mut client = hosted.start_guest()?;
    hosted.limit(TIMEOUT);
    let (_, lines) = hosted.collect_lines(DONE)?;
    let rows = Rows::parse(&lines).context("the guest `exits` and this tool are of different releases")?;
    Ok(Measured { rows, tsc_hz: client.info()?.tsc_hz })
}

impl Clock {
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Instructions => INSTRUCTIONS,
            Self::Cycles => "cycles",
        }
    }

    pub(super) fn variant(self) -> &'static str {
        match self {
            Self::Instructions => "icount",
            Self::Cycles => "host clock",
        }
    }

    pub(super) fn arguments(self) -> Vec<OsString> {
        match self {
            Self::Instructions => COUNT_INSTRUCTIONS.map(Into::into).to_vec(),
            Self::Cycles => Vec::new(),
        }
    }
}
