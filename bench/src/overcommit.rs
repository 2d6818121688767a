// SPDX-License-Identifier: MIT OR Apache-2.0
//! `overcommit`: stock Linux guests whose vCPUs wait for each other, with KVM's features for vCPUs that share CPUs
//! (`paravirtual`) and without.
//!
//! - Locks: four vCPUs on two CPUs contend for one spinlock of the kernel. Without the features Linux uses a
//!   test-and-set lock in a guest, whose waiters spin; with them a waiter halts until the holder wakes it. A figure is
//!   the lock's operations in a second of the guest's clock.
//! - Pipe: two threads on two vCPUs, each with a CPU of its own, wake each other. Every turn is an interrupt to the
//!   other CPU, a HLT and a wake-up. A figure is the time of a round, beside that of the same kernel on the same
//!   machine without Baton.
//!
//! The emulator's clock advances by 1 ns with each instruction of either CPU (`-icount shift=0`), so that a second is
//! a billion instructions, whatever else the machine does that the emulator runs on. The locks are measured by the wall
//! clock, too, with CPUs that run at once; no goal goes by that.

use std::time::Duration;

use anyhow::{Context as _, Result};
use baton::config::Guest;
use baton::size::Size;
use lab::What;

use super::direct::{self, Direct};
use super::report::{Figure, Goal, Report};
use super::setup::{COUNT_INSTRUCTIONS, HostSetup, guest};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "overcommit",
    about: "vCPUs that wait for each other: contended kernel locks, and pipes, with paravirtual features and without",
    goals: &[
        Goal::at_least("pv_unhalt_gain", 1.5, RATIO),
        Goal::at_most("pipe_pingpong_vs_direct", 1.6, RATIO),
        Goal::at_most("ipi_between_vcpus_instructions", 1600.0, "instructions"),
    ],
    run,
};

const RATIO: &str = "ratio";
const KERNEL: &str = "target/kernels/default/vmlinuz";
const INITRD: &str = "target/guests/initramfs.cpio";
const HOST_CPUS: u32 = 2;
const HOST_MEMORY: Size = Size::mebibytes(512);
const GUEST_MEMORY: Size = Size::mebibytes(256);
/// The same, in the emulator's notation.
const DIRECT_MEMORY: &str = "256M";
/// vCPUs that contend for a lock.
const CONTENDERS: u32 = 4;
/// Milliseconds of the guest's clock that they do.
const LOCKS_MS: u32 = 2000;
const ROUNDS: u32 = 2000;
/// Longest time for one machine.
const TIMEOUT: Duration = Duration::from_secs(240);

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let locks = alternate(context, "locks", |is_paravirtual| locks(context, is_paravirtual, &COUNT_INSTRUCTIONS))?;
    let per_second = |variant, values| Figure::measured(variant, "operations_per_second", "1/s", values);
    report.figure(per_second("locks, test-and-set", locks.plain.clone()))?;
    report.figure(per_second("locks, paravirtual", locks.paravirtual.clone()))?;
    let gains: Vec<f64> = locks.paravirtual.iter().zip(&locks.plain).map(|(with, without)| with / without).collect();
    let gain = report.figure(Figure::measured("locks", "gain", RATIO, gains))?;
    report.goal("pv_unhalt_gain", gain)?;
    concurrent_locks(context, report)?;
    pipes(context, report)?;
    report.leave_out("ipi_between_vcpus_instructions")
}

/// The same by the wall clock, with a thread of the emulator for each CPU. A halt and a wake-up are dear there.
fn concurrent_locks(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let locks = alternate(context, "locks, concurrent CPUs", |is_paravirtual| locks(context, is_paravirtual, &[]))?;
    let gains = locks.paravirtual.iter().zip(&locks.plain).map(|(with, without)| with / without).collect::<Vec<f64>>();
    report.figure(Figure::measured("locks, concurrent CPUs", "gain", RATIO, gains)).map(drop)
}

fn pipes(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut direct = Vec::new();
    let pipes = alternate(context, "pipe", |is_paravirtual| {
        if !is_paravirtual {
            direct.push(direct_pipe(context)?);
        }
        pipe(context, is_paravirtual)
    })?;
    let round = |variant, values| Figure::measured(variant, "pipe_round", "ns", values);
    report.figure(round("direct", direct.clone()))?;
    report.figure(round("Baton", pipes.plain.clone()))?;
    report.figure(round("Baton, paravirtual", pipes.paravirtual))?;
    let ratios: Vec<f64> = pipes.plain.iter().zip(&direct).map(|(baton, direct)| baton / direct).collect();
    let ratio = report.figure(Figure::measured("Baton", "pipe_vs_direct", RATIO, ratios))?;
    report.goal("pipe_pingpong_vs_direct", ratio)
}

/// The figures of neighbouring runs.
#[derive(Default)]
struct Pairs {
    plain: Vec<f64>,
    paravirtual: Vec<f64>,
}

fn alternate(context: &Context, name: &str, mut measure: impl FnMut(bool) -> Result<f64>) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    for run in 1..=context.runs {
        context.step(&format!("overcommit: {name}, run {run} of {}", context.runs));
        pairs.plain.push(measure(false)?);
        pairs.paravirtual.push(measure(true)?);
    }
    Ok(pairs)
}

/// Operations in a second.
fn locks(context: &Context, is_paravirtual: bool, extra: &[&str]) -> Result<f64> {
    let task = format!("locks:{LOCKS_MS}");
    let guest = Guest { is_paravirtual, vcpus: CONTENDERS, ..linux(context, &task)? };
    let [operations, milliseconds] = numbers(&line_of(context, guest, "locks: ", extra)?, [" operations in ", " ms"])?;
    Ok(operations / milliseconds * 1000.0)
}

/// Nanoseconds of a round.
fn pipe(context: &Context, is_paravirtual: bool) -> Result<f64> {
    let guest = Guest { is_paravirtual, vcpus: HOST_CPUS, ..linux(context, &pipe_task())? };
    round_ns(&line_of(context, guest, "pipe: ", &COUNT_INSTRUCTIONS)?)
}

fn direct_pipe(context: &Context) -> Result<f64> {
    let mut command = direct::command(context, HOST_CPUS, DIRECT_MEMORY);
    command.args(COUNT_INSTRUCTIONS).arg("-kernel").arg(context.made(KERNEL)?);
    command.arg("-initrd").arg(context.made(INITRD)?).args(["-append", &command_line(&pipe_task())]);
    let mut machine = Direct::start(context, command)?;
    let line = machine.wait("the pipe's line", |_, line| line.contains("pipe: ").then(|| line.to_owned()))?;
    round_ns(&line)
}

fn pipe_task() -> String {
    format!("pipe:{ROUNDS}")
}

fn round_ns(line: &str) -> Result<f64> {
    let [rounds, microseconds] = numbers(line, [" rounds in ", " us"])?;
    Ok(microseconds * 1000.0 / rounds)
}

/// Reads the two numbers of an agent's line: each stands before one of these texts.
fn numbers(line: &str, ends: [&str; 2]) -> Result<[f64; 2]> {
    let before = |end: &str| line.split_once(end)?.0.rsplit(' ').next()?.parse().ok();
    let found = ends.map(before);
    let both = found[0].zip(found[1]).map(|(first, second)| [first, second]);
    both.with_context(|| format!("no figures are in the guest's line {line:?}"))
}

fn command_line(task: &str) -> String {
    format!("console=ttyS0 loglevel=4 agent={task},wait")
}

fn linux(context: &Context, task: &str) -> Result<Guest> {
    Ok(Guest {
        initrd: Some(context.made(INITRD)?),
        cmdline: command_line(task),
        ..guest("linux", context.made(KERNEL)?, GUEST_MEMORY)
    })
}

/// Boots the guest; returns the line that begins so.
fn line_of(context: &Context, guest: Guest, begin: &str, extra: &[&str]) -> Result<String> {
    let extra = extra.iter().map(Into::into).collect();
    let setup = HostSetup { cpus: HOST_CPUS, guests: vec![guest], extra, ..HostSetup::new(HOST_MEMORY) };
    let mut console = String::new();
    let mut host = setup.start(context)?;
    let found = host.wait(context.timeout.max(TIMEOUT), &format!("the line {begin:?}"), |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        let (whole, _) = console.rsplit_once('\n')?;
        whole.lines().map(str::trim_end).find(|line| line.contains(begin)).map(str::to_owned)
    });
    found.with_context(|| format!("the guest printed\n{console}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_the_agents_lines() {
        assert_eq!(round_ns("pipe: 2000 rounds in 50000 us").unwrap(), 25000.0);
        let line = "[ 1.0] locks: 300 operations in 2000 ms";
        assert_eq!(numbers(line, [" operations in ", " ms"]).unwrap(), [300.0, 2000.0]);
        assert!(round_ns("pipe: WRONG: no such CPU").is_err());
    }
}
