// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer: a stock 6.12 kernel on the same machine that runs a guest by KVM, as soon as it can. Its time is from its
//! log's first line to the one that says that the guest has executed its first instruction, by the log's own times.

use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::{Line, Process};

use super::machine::lazy_memory;
use crate::Context;

const KERNEL: &str = "target/kernels/6.12/vmlinuz";
/// What `/init` writes to the log (`guests/kvm`): that the guest has begun, or that it cannot.
const BEGAN: &str = "first-guest: executed its first instruction";
const FAILED: &str = "first-guest: no guest runs";

/// Milliseconds from the first line of its log to its guest's first instruction.
pub(super) fn boot(context: &Context, gibibytes: u64, processors: u32) -> Result<f64> {
    let (sender, lines) = mpsc::channel();
    let on_line = move |line: Line| drop(sender.send(line.text));
    let _process = Process::spawn(command(context, gibibytes, processors)?, on_line)
        .with_context(|| format!("{} cannot be started", context.qemu.display()))?;
    let (started, mut first, mut last) = (Instant::now(), None, String::new());
    while let Some(left) = context.timeout.checked_sub(started.elapsed()) {
        let Ok(line) = lines.recv_timeout(left.max(Duration::from_millis(1))) else { break };
        first = first.or_else(|| stamp_ms(&line));
        if line.contains(BEGAN) {
            let began = stamp_ms(&line).zip(first).map(|(end, start)| end - start);
            return began.with_context(|| format!("the line {line:?} has no time stamp"));
        }
        if line.contains(FAILED) {
            bail!("the Linux that is compared with cannot run a guest: {line}");
        }
        last = line;
    }
    bail!("no guest began under Linux 6.12; its last line was {last:?}")
}

/// Milliseconds, of `[    0.829140] …`.
fn stamp_ms(line: &str) -> Option<f64> {
    let seconds: f64 = line.trim_start().strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()?;
    Some(seconds * 1e3)
}

/// The machine is the lab's, with the kernel in Baton's place and the initramfs of `guests/kvm`.
fn command(context: &Context, gibibytes: u64, processors: u32) -> Result<Command> {
    let mut command = Command::new(&context.qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", &processors.to_string(), "-m", &format!("{gibibytes}G")]);
    command.args(lazy_memory(gibibytes));
    command.arg("-kernel").arg(context.made(KERNEL)?);
    command.arg("-initrd").arg(context.made("target/guests/kvm.cpio")?);
    command.args(["-append", "console=ttyS0 printk.time=1 panic=-1 no_timer_check"]);
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_that_stands_before_it() {
        assert_eq!(stamp_ms("[    1.250000] first-guest: executed"), Some(1250.0));
        assert_eq!(stamp_ms("first-guest: executed"), None);
    }
}
