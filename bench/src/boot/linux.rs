// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer: a stock 6.12 kernel on the same machine that runs a guest by KVM as soon as it can. Its time is from its
//! log's first line to the line that reports the guest's first instruction, by the log's time stamps.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::machine::lazy_memory;
use crate::Context;
use crate::direct::{self, Direct, time_stamp};

const KERNEL: &str = "target/kernels/6.12/vmlinuz";
/// Lines of `/init` (`guests/kvm`): the guest has begun, or it cannot.
const BEGAN: &str = "first-guest: executed its first instruction";
const FAILED: &str = "first-guest: no guest runs";

/// Returns the milliseconds from the first line of Linux's log to its guest's first instruction.
pub(super) fn boot(context: &Context, gibibytes: u64, cpus: u32) -> Result<f64> {
    let mut machine = Direct::start(context, command(context, gibibytes, cpus)?)?;
    let mut first = None;
    let last = machine.wait("the first guest's first instruction", |_, line| {
        first = first.or_else(|| time_stamp(line));
        (line.contains(BEGAN) || line.contains(FAILED)).then(|| line.to_owned())
    })?;
    if last.contains(FAILED) {
        bail!("the Linux that is compared with cannot run a guest: {last}");
    }
    let seconds = time_stamp(&last).zip(first).map(|(end, start)| end - start);
    Ok(seconds.with_context(|| format!("the line {last:?} has no time stamp"))? * 1e3)
}

/// The machine is the lab's, with the kernel in Baton's place and the initramfs of `guests/kvm`.
fn command(context: &Context, gibibytes: u64, cpus: u32) -> Result<Command> {
    let mut command = direct::command(context, cpus, &format!("{gibibytes}G"));
    command.args(lazy_memory(gibibytes));
    command.arg("-kernel").arg(context.made(KERNEL)?);
    command.arg("-initrd").arg(context.made("target/guests/kvm.cpio")?);
    command.args(["-append", "console=ttyS0 printk.time=1 panic=-1 no_timer_check"]);
    Ok(command)
}
