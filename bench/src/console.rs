// SPDX-License-Identifier: MIT OR Apache-2.0
//! `console`: the cost of printing the log, byte by byte and by the FIFO.
//!
//! On QEMU's UART Baton logs its storm (`measure=log-storm`, some 400 kB) with `console=byte` and `console=fifo` in
//! turn. QEMU's trace has every access to the UART; Baton's report behind the storm has the longest span with
//! interrupts off. Stock Linux boots in the same emulator beside them. QEMU's UART takes bytes at once, so the speed of
//! a wire is computed: `sim`'s UART under the code of `uart`, with the port accesses of the source's machine.

use anyhow::Result;
use sim::serial::{Outcome, Setup, Way, print, storm};
use uart::Policy;

use super::report::{Figure, Goal, Report};
use super::{Bench, Context, log};

mod emulated;
mod trace;

use emulated::{Printed, baton, linux};
use trace::Accesses;

pub(super) static BENCH: Bench = Bench {
    name: "console",
    about: "printing the log: accesses per byte, interrupts off, and what a wire of 115,200 baud makes of it",
    goals: &[
        Goal::at_most("fifo_accesses_per_byte", 1.07, ACCESSES),
        Goal::at_most("irq_off_max", 1.0, "FIFO fills"),
        log::GOAL,
        Goal::at_least("fifo_wire_share", 0.99, SHARE),
        Goal::at_most("fifo_cpu_share", 0.03, SHARE),
        Goal::at_least("fifo_slow_uart_wire_share", 0.95, SHARE),
        Goal::at_most("late_ticks", 0.0, "ticks"),
    ],
    run,
};

const ACCESSES: &str = "accesses per byte";
const SHARE: &str = "share";
const POLICIES: [&str; 2] = ["byte", "fifo"];
/// Disks that cause the log lines of the source's storm.
const DISKS: usize = 600;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let kernel = context.made("target/kernels/default/vmlinuz")?;
    let initrd = context.made("target/guests/initramfs.cpio")?;
    let (mut ours, mut theirs) = ([Vec::new(), Vec::new()], Vec::new());
    for run in 1..=context.runs {
        for (policy, printed) in POLICIES.iter().zip(&mut ours) {
            context.step(&format!("console: run {run} of {}, {policy}", context.runs));
            printed.push(baton(context, policy)?);
        }
        context.step(&format!("console: run {run} of {}, linux", context.runs));
        theirs.push(linux(context, &kernel, &initrd)?);
    }
    for (policy, printed) in POLICIES.iter().zip(&ours) {
        report_measured(report, policy, printed)?;
    }
    report_accesses(report, "linux", &theirs)?;
    report_models(report)?;
    log::run(context, report)
}

fn report_measured(report: &mut Report<'_>, policy: &str, runs: &[Printed]) -> Result<()> {
    let variant = format!("{policy} in qemu");
    let accesses: Vec<Accesses> = runs.iter().map(|run| run.accesses).collect();
    let per_byte = report_accesses(report, &variant, &accesses)?;
    let mut figure = |metric: &str, unit, of: &dyn Fn(&Printed) -> f64| {
        report.figure(Figure::measured(&variant, metric, unit, runs.iter().map(of).collect::<Vec<f64>>()))
    };
    figure("bytes", "bytes", &|run| run.accesses.bytes())?;
    figure("bytes_per_second", "B/s of the machine's time", &|run| run.bytes / run.spent_ns * 1e9)?;
    figure("printing_per_byte", "instructions", &|run| run.spent_ns / run.bytes)?;
    figure("irq_off_longest", "instructions", &|run| run.longest_off_ns)?;
    let fills = figure("irq_off_accesses", "FIFO fills", &|run| run.longest_off_accesses / run.fill_accesses)?;
    if policy == "fifo" {
        report.goal("fifo_accesses_per_byte", per_byte)?;
        report.goal("irq_off_max", fills)?;
    }
    Ok(())
}

/// Reports early, later and all accesses; returns the last.
fn report_accesses(report: &mut Report<'_>, variant: &str, runs: &[Accesses]) -> Result<f64> {
    let mut figure = |metric: &str, of: &dyn Fn(&Accesses) -> f64| {
        let unit = if metric == "accesses_set_up" { "accesses" } else { ACCESSES };
        report.figure(Figure::measured(variant, metric, unit, runs.iter().map(of).collect::<Vec<f64>>()))
    };
    figure("accesses_set_up", &|run| run.set_up as f64)?;
    figure("accesses_early", &|run| run.early.per_byte())?;
    figure("accesses_later", &|run| run.later.per_byte())?;
    figure("accesses_all", &Accesses::per_byte)
}

fn report_models(report: &mut Report<'_>) -> Result<()> {
    let lines = storm(DISKS);
    let model = |setup, policy, way| print(setup, policy, way, &lines).map_err(anyhow::Error::from);
    let fifo = model(Setup::good(), Policy::Fifo, Way::Interrupts)?;
    let slow = model(Setup::slow(), Policy::Fifo, Way::Interrupts)?;
    let slow_polled = model(Setup::slow(), Policy::Fifo, Way::Polling)?;
    let byte = model(Setup::good(), Policy::Byte, Way::Interrupts)?;
    let in_logger = model(Setup::slow(), Policy::Byte, Way::Polling)?;
    report_model(report, "fifo on a wire", &fifo)?;
    report_model(report, "fifo on a slow uart", &slow)?;
    report_model(report, "fifo polled on a slow uart", &slow_polled)?;
    report_model(report, "byte on a wire", &byte)?;
    report_model(report, "byte in the logger on a slow uart", &in_logger)?;
    report.modelled_goal("fifo_wire_share", fifo.wire_share())?;
    report.modelled_goal("fifo_cpu_share", fifo.cpu_share())?;
    report.modelled_goal("fifo_slow_uart_wire_share", slow.wire_share().min(slow_polled.wire_share()))?;
    report.modelled_goal("late_ticks", slow.late_ticks.max(slow_polled.late_ticks) as f64)
}

fn report_model(report: &mut Report<'_>, variant: &str, outcome: &Outcome) -> Result<()> {
    let mut figure = |metric: &str, unit, value| report.figure(Figure::modelled(variant, metric, unit, [value]));
    figure("bytes_per_second", "B/s", outcome.bytes_per_second())?;
    figure("wire_share", SHARE, outcome.wire_share())?;
    figure("cpu_share", SHARE, outcome.cpu_share())?;
    figure("accesses_all", ACCESSES, outcome.accesses_per_byte())?;
    figure("irq_off_longest", "us", outcome.longest_off_ns as f64 / 1e3)?;
    figure("late_ticks", "ticks", outcome.late_ticks as f64)?;
    Ok(())
}
