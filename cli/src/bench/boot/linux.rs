// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer: a stock 6.12 kernel directly on the same machine, from its log's first line to /init by the log's own times.

use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::machine::lazy_memory;
use crate::bench::Context;
use crate::lab::{Line, Process};
use crate::timeline::{advice, dmesg};

const KERNEL: &str = "target/kernels/6.12/vmlinuz";

/// Milliseconds from the first line of its log to /init.
pub(super) fn boot(context: &Context, gibibytes: u64, processors: u32) -> Result<f64> {
    let (sender, lines) = mpsc::channel();
    let on_line = move |line: Line| drop(sender.send(line.text));
    let _process = Process::spawn(command(context, gibibytes, processors)?, on_line)
        .with_context(|| format!("{} cannot be started", context.qemu.display()))?;
    let (started, mut log) = (Instant::now(), String::new());
    while let Some(left) = context.timeout.checked_sub(started.elapsed()) {
        let Ok(line) = lines.recv_timeout(left.max(Duration::from_millis(1))) else { break };
        log.push_str(&line);
        log.push('\n');
        if line.split_once("] ").is_some_and(|(_, text)| advice::is_init(text.trim_end())) {
            return Ok(dmesg::read("linux", &log)?.end_us() / 1e3);
        }
    }
    bail!("Linux 6.12 did not reach /init; its last line was {:?}", log.lines().last())
}

/// The machine is the lab's, with the kernel in Baton's place and the agent's initramfs.
fn command(context: &Context, gibibytes: u64, processors: u32) -> Result<Command> {
    let mut command = Command::new(&context.qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", &processors.to_string(), "-m", &format!("{gibibytes}G")]);
    command.args(lazy_memory(gibibytes));
    command.arg("-kernel").arg(context.made(KERNEL)?);
    command.arg("-initrd").arg(context.made("target/guests/initramfs.cpio")?);
    command.args(["-append", "console=ttyS0 printk.time=1 panic=-1 no_timer_check agent=wait"]);
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    Ok(command)
}
