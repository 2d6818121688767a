// SPDX-License-Identifier: MIT OR Apache-2.0
//! `panic`: the cost of a machine with a host that has panicked.
//!
//! Hosts of 1, 2 and 8 CPUs, all in their loops, are made to panic through the control channel
//! (`selftest=panic-when-asked`), `panic=spin` and `panic=halt` alternating. Beside them stock Linux directly in the
//! same emulator, panicked by its agent through sysrq with `panic=0`, and the emulator's own floor: a machine with
//! a boot sector that halts it with interrupts off.
//!
//! - `cpu_seconds`: CPU time of the emulator's process over 60 s, from a second after the report's last line on,
//!   by the scheduler's account in nanoseconds.
//! - `instructions`: how many instructions the machine's CPUs execute in 10 s after their end, counted by the
//!   emulator itself (`-icount shift=0`, asked for with QMP's `query-replay`). Counting, it runs all CPUs in one
//!   thread.

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::size::Size;
use lab::{CpuTime, Happening, Lab, What, qmp};
use wire::RequestBody;

use super::context::Build;
use super::report::{Figure, Goal, Report};
use super::setup::{HostSetup, temporary_folder};
use super::statistics::median;
use super::{Bench, Context};

mod floor;
mod linux;

pub(super) static BENCH: Bench = Bench {
    name: "panic",
    about: "a machine after its host's panic: CPU time and instructions, spinning, halted, and stock Linux",
    goals: &[
        Goal::at_most("halt_vs_spin_events", 1.0 / 961.0, "ratio"),
        Goal::at_most("halt_vs_linux_cpu", 1.0 / 50.0, "ratio"),
    ],
    run,
};

const CPUS: [u32; 3] = [1, 2, 8];
const MEMORY: Size = Size::mebibytes(512);
/// For how long instructions are counted.
const SPAN: Duration = Duration::from_secs(10);
/// For how long CPU time is measured: what is left of a halted machine are single milliseconds.
const CPU_SPAN: Duration = Duration::from_secs(60);
/// The delay after the end in which activity under way may finish.
const DELAY: Duration = Duration::from_secs(1);
/// The time limit of the request that makes the host panic: it has no answer.
const QUESTION: Duration = Duration::from_millis(200);
/// The last line of the host's report.
const REPORTED: &str = "end of report";

/// The figures of machines of one size.
#[derive(Default)]
struct Runs {
    spin: Vec<f64>,
    halt: Vec<f64>,
    linux: Vec<f64>,
    floor: Vec<f64>,
    spin_instructions: Vec<f64>,
    halt_instructions: Vec<f64>,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let (mut events, mut cpu) = (Vec::new(), Vec::new());
    for cpus in CPUS {
        let mut runs = Runs::default();
        for run in 1..=context.runs {
            let step = |what: &str| {
                context.step(&format!("panic: {cpus} CPUs, run {run} of {}, {what}", context.runs));
            };
            step("spin");
            runs.spin.push(seconds_of_host(context, cpus, "spin")?);
            step("halt");
            runs.halt.push(seconds_of_host(context, cpus, "halt")?);
            step("Linux");
            runs.linux.push(linux::seconds(context, cpus)?);
            step("the emulator's floor");
            runs.floor.push(floor::seconds(context, cpus)?);
            step("spin, instructions");
            runs.spin_instructions.push(instructions(context, cpus, "spin")?);
            step("halt, instructions");
            runs.halt_instructions.push(instructions(context, cpus, "halt")?);
        }
        let (of_events, of_cpu) = report_size(report, cpus, runs)?;
        events.push(of_events);
        cpu.push(of_cpu);
    }
    // The worst size counts.
    report.goal("halt_vs_spin_events", events.into_iter().fold(0.0, f64::max))?;
    report.goal("halt_vs_linux_cpu", cpu.into_iter().fold(0.0, f64::max))
}

/// Reports one size; returns the two ratios that the goals are held against.
fn report_size(report: &mut Report<'_>, cpus: u32, runs: Runs) -> Result<(f64, f64)> {
    let figure = |variant: &str, metric: &str, unit, runs: &[f64]| {
        Figure::measured(format!("{variant} {cpus}"), metric, unit, runs)
    };
    if median(&runs.spin_instructions) == Some(0.0) || median(&runs.linux) == Some(0.0) {
        bail!("the baseline did nothing at all: what it is compared with would appear infinitely worse");
    }
    let cpu = report.compared(
        figure("halt", "cpu_seconds", "s", &runs.halt),
        figure("linux", "cpu_seconds", "s", &runs.linux),
        &format!("halt/linux {cpus}"),
        "processor_seconds_ratio",
    )?;
    report.figure(figure("spin", "cpu_seconds", "s", &runs.spin))?;
    report.figure(figure("floor", "cpu_seconds", "s", &runs.floor))?;
    let events = report.compared(
        figure("halt", "instructions", "instructions", &runs.halt_instructions),
        figure("spin", "instructions", "instructions", &runs.spin_instructions),
        &format!("halt/spin {cpus}"),
        "instructions_ratio",
    )?;
    Ok((events, cpu))
}

/// Returns the CPU seconds that a host takes after its panic.
fn seconds_of_host(context: &Context, cpus: u32, action: &str) -> Result<f64> {
    let folder = temporary_folder()?;
    let lab = panicked(context, setup(cpus, action).start_in(context, folder.path())?)?;
    seconds(lab.pid())
}

/// Returns the instructions that a host executes after its panic.
fn instructions(context: &Context, cpus: u32, action: &str) -> Result<f64> {
    let folder = temporary_folder()?;
    let socket = folder.path().join("qmp.sock");
    let mut setup = setup(cpus, action);
    // Without sleep=off: what is counted is how many instructions fit into a span of the wall clock.
    setup.extra.extend(["-icount", "shift=0", "-cpu", "max,-x2apic"].map(Into::into));
    setup.extra.extend(qmp::arguments(&socket));
    let _lab = panicked(context, setup.start_in(context, folder.path())?)?;
    let mut monitor = qmp::Monitor::connect(&socket)?;
    thread::sleep(DELAY);
    let before = monitor.instructions()?;
    thread::sleep(SPAN);
    Ok((monitor.instructions()? - before) as f64)
}

fn setup(cpus: u32, action: &str) -> HostSetup {
    let options = format!("selftest=panic-when-asked panic={action}");
    HostSetup { cpus, build: Build::WithFaultPoints, options, ..HostSetup::new(MEMORY) }
}

/// Waits until the host is up, and makes it panic.
fn panicked(context: &Context, mut lab: Lab) -> Result<Lab> {
    lab.wait_for(context.timeout, |what| matches!(what, What::Ready))?;
    // There is no answer to this question.
    let _ = lab.client()?.request_within(QUESTION, RequestBody::Events { from_sequence: 0, limit: 1 });
    while let Some(Happening { what, .. }) = lab.next(context.timeout.saturating_sub(lab.elapsed())) {
        match what {
            What::HostLine(line) if line.contains(REPORTED) => return Ok(lab),
            What::Ended(ending) => bail!("the host was to panic and stay; {ending}"),
            _ => {}
        }
    }
    bail!("the host did not panic within {:?}", context.timeout)
}

/// Returns the CPU seconds that a process takes in [`CPU_SPAN`].
fn seconds(pid: u32) -> Result<f64> {
    thread::sleep(DELAY);
    let before = CpuTime::of(pid)?;
    thread::sleep(CPU_SPAN);
    Ok(CpuTime::of(pid)?.since(&before).as_secs_f64())
}
