// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel directly in the emulator.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::{Line, Process};

use super::{MARKER, entry};
use crate::Context;
use crate::debugger::{self, Debugger};
use crate::host::Plan;

/// Milliseconds from the kernel's first instruction to the agent's first line.
pub(super) fn boot(context: &Context, plan: &Plan) -> Result<f64> {
    let entry = entry::of_file(&plan.kernel)?.direct;
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let socket = folder.path().join("debugger.sock");
    let (sender, lines) = mpsc::channel();
    let on_line = move |line: Line| drop(sender.send((Instant::now(), line.text)));
    let _process = Process::spawn(command(&context.qemu, plan, &socket), on_line)
        .with_context(|| format!("{} cannot be started", context.qemu.display()))?;
    let mut debugger = Debugger::connect(&socket)?;
    debugger.run_to(entry)?;
    debugger.wait_stopped(context.timeout)?;
    let entered = Instant::now();
    debugger.detach()?;
    let mut last_line = String::new();
    while let Some(left) = context.timeout.checked_sub(entered.elapsed()) {
        let Ok((at, line)) = lines.recv_timeout(left.max(Duration::from_millis(1))) else { break };
        if line.contains(MARKER) {
            return Ok(at.saturating_duration_since(entered).as_secs_f64() * 1e3);
        }
        last_line = line;
    }
    bail!("the kernel did not reach /init directly in the emulator; its last line was {last_line:?}")
}

/// The machine is the lab's, with the kernel in Baton's place.
fn command(qemu: &Path, plan: &Plan, debugger_socket: &Path) -> Command {
    let mut command = Command::new(qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", &format!("{}M", plan.memory.bytes >> 20)]);
    command.arg("-kernel").arg(&plan.kernel).args(["-append", &plan.cmdline]);
    if let Some(initrd) = &plan.initrd {
        command.arg("-initrd").arg(initrd);
    }
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    command.args(debugger::arguments(debugger_socket));
    command
}
