// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest-boot`: how much longer a stock kernel takes to reach its userspace under Baton than directly in the same
//! emulator.
//!
//! Kernel, initial RAM disk, command line, memory and number of CPUs (one) are the same, and so is the emulator's
//! `-cpu`. Both clocks are the tool's, and both start at the same instruction: the kernel's 64-bit entry (`startup_64`
//! of its decompressor, 0x200 bytes into the protected-mode part), where the emulator's debugger stub stops the machine
//! and lets it go again ([`super::debugger`]). So firmware, boot loader and Baton's own start count on neither side;
//! directly in the emulator the few hundred instructions of `startup_32` before it do not count either. Both end when
//! the agent's first line has arrived in the tool, by the serial line there, through Baton's control channel here.
//!
//! As a check, the time since the tool learnt of Baton's event `VmStarted` is reported too; it lacks the way of that
//! message to the tool, some milliseconds.
//!
//! The account of the difference: exits by kind until /init, times what one of that kind costs (`account`).

use std::path::PathBuf;

use anyhow::{Result, bail};
use baton::size::Size;
use bundle::Pmu;

use super::exits::{self, Clock};
use super::host::Plan;
use super::report::{Figure, Goal, Report};
use super::{Bench, Context};

mod account;
mod direct;
mod entry;
mod hosted;

use account::Account;

/// The agent's first line.
pub(super) const MARKER: &str = "baton-agent: init reached";
/// The kernel's command line on both sides.
pub(super) const COMMAND_LINE: &str = "console=ttyS0 agent=wait";

const MEMORY: Size = Size::mebibytes(256);
const RATIO_GOAL: &str = "guest_boot_ratio";
/// The kernels; the one with the goal's ratio is first.
const KERNELS: [&str; 2] = ["6.12", "6.1"];
const GOAL_KERNEL: &str = KERNELS[0];

pub(super) static BENCH: Bench = Bench {
    name: "guest-boot",
    about: "a stock kernel from its first instruction to /init, under Baton and directly in the same emulator",
    goals: &[Goal::at_most(RATIO_GOAL, 2.0, "ratio")],
    run,
};

/// Runs of one kernel, those of one index beside each other.
#[derive(Default)]
struct Runs {
    baton_ms: Vec<f64>,
    since_event_ms: Vec<f64>,
    direct_ms: Vec<f64>,
    accounts: Vec<Account>,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let kernels: Vec<&str> = KERNELS.into_iter().filter(|kernel| plan(context, kernel).is_ok()).collect();
    for missing in KERNELS.iter().filter(|kernel| !kernels.contains(kernel)) {
        context.note(&format!("guest-boot: target/kernels/{missing}/vmlinuz is not here: that kernel is left out"));
    }
    if kernels.is_empty() {
        bail!("there is no kernel below target/kernels; `make bench` fetches them");
    }
    for kernel in kernels {
        measure(context, report, kernel)?;
    }
    Ok(())
}

fn measure(context: &Context, report: &mut Report<'_>, kernel: &str) -> Result<()> {
    let plan = plan(context, kernel)?;
    let mut runs = Runs::default();
    for run in 1..=context.runs {
        let step = |side: &str| context.step(&format!("guest-boot: {kernel}, run {run} of {}, {side}", context.runs));
        step("under Baton");
        let boot = hosted::boot(context, &plan)?;
        step("directly");
        let direct_ms = direct::boot(context, &plan)?;
        step("the cost of exits");
        let costs = exits::measure(context, Clock::Cycles)?;
        runs.baton_ms.push(boot.since_entry_ms);
        runs.since_event_ms.push(boot.since_event_ms);
        runs.direct_ms.push(direct_ms);
        runs.accounts.push(Account::of(&boot.exits, &costs, boot.since_entry_ms - direct_ms));
    }
    report_kernel(report, kernel, runs)
}

fn report_kernel(report: &mut Report<'_>, kernel: &str, runs: Runs) -> Result<()> {
    let (baton, direct) = (format!("baton {kernel}"), format!("direct {kernel}"));
    let ratio = report.compared(
        Figure::measured(&baton, "entry_to_init", "ms", runs.baton_ms),
        Figure::measured(&direct, "entry_to_init", "ms", runs.direct_ms),
        &format!("baton/direct {kernel}"),
        "entry_to_init_ratio",
    )?;
    report.figure(Figure::measured(&baton, "started_event_to_init", "ms", runs.since_event_ms))?;
    for row in account::rows(&runs.accounts) {
        report.figure(Figure::measured(&baton, row.metric, row.unit, row.runs))?;
    }
    if kernel == GOAL_KERNEL { report.goal(RATIO_GOAL, ratio) } else { Ok(()) }
}

fn plan(context: &Context, kernel: &str) -> Result<Plan> {
    plan_of(context, context.made(&format!("target/kernels/{kernel}/vmlinuz"))?)
}

/// The release's own kernel.
pub(super) fn default_plan(context: &Context) -> Result<Plan> {
    plan_of(context, context.made("target/kernels/default/vmlinuz")?)
}

fn plan_of(context: &Context, kernel: PathBuf) -> Result<Plan> {
    let initrd = Some(context.made("target/guests/initramfs.cpio")?);
    Ok(Plan { kernel, initrd, cmdline: COMMAND_LINE.to_owned(), memory: MEMORY, pmu: Pmu::Off, options: String::new() })
}
