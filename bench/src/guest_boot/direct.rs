// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel directly in the emulator.

use std::time::Instant;

use anyhow::Result;

use super::{MARKER, entry};
use crate::Context;
use crate::debugger::{self, Debugger};
use crate::direct::{self, Direct};
use crate::host::Plan;
use crate::setup::temporary_folder;

/// Returns the milliseconds from the kernel's first instruction to the agent's first line.
pub(super) fn boot(context: &Context, plan: &Plan) -> Result<f64> {
    let entry = entry::of_file(&plan.kernel)?.direct;
    let folder = temporary_folder()?;
    let socket = folder.path().join("debugger.sock");
    let mut command = direct::command(context, 1, &format!("{}M", plan.memory.bytes >> 20));
    command.arg("-kernel").arg(&plan.kernel).args(["-append", &plan.cmdline]);
    if let Some(initrd) = &plan.initrd {
        command.arg("-initrd").arg(initrd);
    }
    command.args(debugger::arguments(&socket));
    let mut machine = Direct::start(context, command)?;
    let mut debugger = Debugger::connect(&socket)?;
    debugger.stop_at(entry, context.timeout)?;
    let entered = Instant::now();
    debugger.detach()?;
    let reached = machine.wait("/init", |at, line| line.contains(MARKER).then_some(at))?;
    Ok(reached.saturating_duration_since(entered).as_secs_f64() * 1e3)
}
