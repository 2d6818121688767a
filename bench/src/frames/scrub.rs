// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest's start takes for its memory: to be zeroed, or scrubbed before by an idle processor.

use anyhow::{Result, bail};
use baton::config::Guest;
use lab::{Happening, Lab, What};
use wire::{EventKind, RequestBody};

use super::INSTRUCTIONS;
use super::boot::{GIB, guest, number_before, start};
use crate::Context;
use crate::report::{Figure, Report};

const GUEST_BYTES: u64 = 256 << 20;

/// Starts a guest, and once the host has scrubbed what it left, again.
pub(super) fn compare(context: &Context, report: &mut Report<'_>) -> Result<()> {
    context.step("frames: a guest in memory to be zeroed, and in scrubbed memory");
    let guest = Guest { autostart: false, ..guest(context, GUEST_BYTES)? };
    let (mut lab, _folder) = start(context, GIB, &guest, "")?;
    wait(context, &mut lab, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    let zeroed = start_once(context, &mut lab, &guest.name)?;
    // The host's only processor scrubs once it has nothing else to do: it answers when it is asked meanwhile.
    wait(context, &mut lab, "the end of scrubbing", |what| host_line(what, " bytes are scrubbed"))?;
    let scrubbed = start_once(context, &mut lab, &guest.name)?;
    lab.kill();
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

/// Starts the guest and waits for its end; returns what its memory took.
fn start_once(context: &Context, lab: &mut Lab, name: &str) -> Result<f64> {
    lab.client()?.order(RequestBody::VmStart { name: name.to_owned() })?;
    let taken = wait(context, lab, "the guest's memory", |what| host_line(what, " cycles"))?;
    let is_end = |what: &What| match what {
        What::Event(event) if matches!(event.kind, EventKind::VmDebugExit { .. }) => Some(()),
        _ => None,
    };
    wait(context, lab, "the guest's end", is_end)?;
    Ok(taken)
}

/// The number before `mark` in a line of the host's about guests' memory.
fn host_line(what: &What, mark: &str) -> Option<f64> {
    match what {
        What::HostLine(line) if line.contains("for a guest") || line.contains("scrubbed") => number_before(line, mark),
        _ => None,
    }
}

fn wait<T>(context: &Context, lab: &mut Lab, name: &str, found: impl Fn(&What) -> Option<T>) -> Result<T> {
    while let Some(left) = context.timeout.checked_sub(lab.elapsed()) {
        let Some(Happening { what, .. }) = lab.next(left) else { break };
        if let Some(found) = found(&what) {
            return Ok(found);
        }
    }
    bail!("{name} did not come within {:?}; raise --timeout on a slow machine", context.timeout)
}
