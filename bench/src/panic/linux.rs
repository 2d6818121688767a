// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer: stock Linux directly in the emulator, panicked.

use anyhow::Result;

use super::MEMORY;
use crate::Context;
use crate::direct::{self, Direct};

/// The last line of Linux's panic.
const PANICKED: &str = "end Kernel panic";

/// Returns the CPU seconds that Linux takes after its panic.
pub(super) fn seconds(context: &Context, cpus: u32) -> Result<f64> {
    let mut command = direct::command(context, cpus, &format!("{}M", MEMORY.bytes >> 20));
    command.arg("-kernel").arg(context.made("target/kernels/default/vmlinuz")?);
    command.arg("-initrd").arg(context.made("target/guests/initramfs.cpio")?);
    command.args(["-append", "console=ttyS0 panic=0 agent=panic"]);
    let mut machine = Direct::start(context, command)?;
    machine.wait("Linux's panic", |_, line| line.contains(PANICKED).then_some(()))?;
    super::seconds(machine.pid())
}
