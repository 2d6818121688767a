// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel under Baton.

use anyhow::{Context as _, Result};
use wire::ExitCount;

use super::{MARKER, entry};
use crate::Context;
use crate::debugger::{self, Debugger};
use crate::host::{Hosted, Plan};

/// The debugger's socket in the machine's folder.
const SOCKET: &str = "debugger.sock";

/// One boot.
pub(super) struct Boot {
    /// From the kernel's first instruction.
    pub since_entry_ms: f64,
    /// From when the tool learnt that the guest has started.
    pub since_event_ms: f64,
    /// Exits until shortly behind the agent's first line.
    pub exits: Vec<ExitCount>,
}

pub(super) fn boot(context: &Context, plan: &Plan) -> Result<Boot> {
    let entry = entry::of_file(&plan.kernel)?.preferred;
    let mut hosted = Hosted::start(context, plan, |folder| debugger::arguments(&folder.path().join(SOCKET)))?;
    let mut debugger = Debugger::connect(&hosted.folder().path().join(SOCKET))?;
    debugger.run_to(entry)?;
    let mut client = hosted.start_guest()?;
    debugger.wait_stopped(context.timeout)?;
    let entered = hosted.lab.elapsed();
    debugger.detach()?;
    let started = hosted.wait_started()?;
    let reached = hosted.wait_line(MARKER)?;
    let vm = client.vms()?.into_iter().next().context("the host lists no guest")?;
    let since = |start| reached.saturating_sub(start).as_secs_f64() * 1e3;
    Ok(Boot { since_entry_ms: since(entered), since_event_ms: since(started), exits: vm.exits })
}
