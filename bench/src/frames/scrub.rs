// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of a guest's memory at its start: zeroed then, or scrubbed before by an idle CPU.

use anyhow::Result;
use baton::config::Guest;
use baton::size::Size;
use lab::What;
use wire::{EventKind, RequestBody};

use super::INSTRUCTIONS;
use super::boot::{GIB, number_before, start};
use crate::Context;
use crate::report::{Figure, Report};
use crate::setup::{Started, keeper};

const GUEST_MEMORY: Size = Size::mebibytes(256);

/// Starts a guest, and once the host has scrubbed what it left, again.
pub(super) fn compare(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("frames: a guest in memory to be zeroed, and in scrubbed memory");
    let guest = Guest { autostart: false, ..keeper(context, "do=fresh", GUEST_MEMORY)? };
    let name = guest.name.clone();
    let mut host = start(context, GIB, guest, "")?;
    host.wait(context.timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    let zeroed = start_once(context, &mut host, &name)?;
    // The host's only CPU scrubs while it has nothing else to do, so a request would delay the end of scrubbing.
    host.wait(context.timeout, "the end of scrubbing", |what| host_line(what, " bytes are scrubbed"))?;
    let scrubbed = start_once(context, &mut host, &name)?;
    let figure = |name: &str, value| {
        Figure::measured(format!("guest of 256 MiB, {name}"), "memory_at_start", INSTRUCTIONS, [value])
    };
    report.compared(
        figure("scrubbed", scrubbed),
        figure("zeroed", zeroed),
        "scrubbed/zeroed",
        "memory_at_start_ratio",
    )?;
    Ok(())
}

/// Starts the guest and waits for its end; returns the instructions that its memory took.
fn start_once(context: &Context, host: &mut Started, name: &str) -> Result<f64> {
    host.lab.client()?.order(RequestBody::VmStart { name: name.to_owned() })?;
    let taken = host.wait(context.timeout, "the guest's memory", |what| host_line(what, " cycles"))?;
    host.wait(context.timeout, "the guest's end", |what| match what {
        What::Event(event) => matches!(event.kind, EventKind::VmDebugExit { .. }).then_some(()),
        _ => None,
    })?;
    Ok(taken)
}

/// The number before `mark` in a line of the host's about guests' memory.
fn host_line(what: &What, mark: &str) -> Option<f64> {
    match what {
        What::HostLine(line) if line.contains("for a guest") || line.contains("scrubbed") => number_before(line, mark),
        _ => None,
    }
}
