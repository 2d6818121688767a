// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer: stock Linux directly in the emulator, panicked.

use std::process::Command;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use lab::{Line, Process};

use super::MEMORY;
use crate::Context;

/// The last line of its panic.
const PANICKED: &str = "end Kernel panic";

/// Processor seconds of a Linux that has panicked.
pub(super) fn seconds(context: &Context, processors: u32) -> Result<f64> {
    let (sender, lines) = mpsc::channel();
    let on_line = move |line: Line| drop(sender.send(line.text));
    let process = Process::spawn(command(context, processors)?, on_line)
        .with_context(|| format!("{} cannot be started", context.qemu.display()))?;
    let guard = Ended(process);
    let started = Instant::now();
    let mut last_line = String::new();
    while let Some(left) = context.timeout.checked_sub(started.elapsed()) {
        let Ok(line) = lines.recv_timeout(left) else { break };
        if line.contains(PANICKED) {
            return super::seconds(guard.0.pid());
        }
        last_line = line;
    }
    bail!("Linux did not panic directly in the emulator; its last line was {last_line:?}")
}

/// Ends the emulator when it is dropped.
pub(super) struct Ended(pub Process);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// The machine is the lab's, with the kernel in Baton's place.
fn command(context: &Context, processors: u32) -> Result<Command> {
    let mut command = Command::new(&context.qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", &processors.to_string()]);
    command.args(["-m", &format!("{}M", MEMORY.bytes >> 20)]);
    command.arg("-kernel").arg(context.made("target/kernels/default/vmlinuz")?);
    command.arg("-initrd").arg(context.made("target/guests/initramfs.cpio")?);
    command.args(["-append", "console=ttyS0 panic=0 agent=panic"]);
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    Ok(command)
}
