// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason for a guest's end, and the measures after it.

use alloc::format;
use alloc::string::{String, ToString};

use vm::machine::Stop;
use wire::{EventKind, VmState};

use crate::guests::events::record;
use crate::guests::guest::{Guest, Order};

/// The reason for a guest's end.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Its own doing.
    Own(Stop),
    /// The operator stopped it.
    Stopped,
    /// The operator wants it to start again.
    Reset,
    /// Its kernel has failed, and the operator wants it stopped then.
    GivenUp,
    /// No CPU can hold another virtual one.
    Crowded,
    /// The hardware has lost some of its state or its memory: how.
    Damaged(String),
}

/// The guest has ended and holds nothing any more.
pub(super) fn finish(guest: &Guest, ending: Ending) {
    let name = guest.config.name.clone();
    let reason = match ending {
        Ending::Reset | Ending::Own(Stop::Reset) => {
            guest.set_state(VmState::Loading, None);
            record(EventKind::VmReset { name });
            return guest.order(Order::Start);
        }
        Ending::Own(stop @ (Stop::Fault(_) | Stop::TripleFault)) => return fail(guest, stop.to_string()),
        Ending::Damaged(reason) => return fail(guest, reason),
        Ending::Crowded => {
            let reason = "each CPU that is online holds as many vCPUs as it can: give the host more";
            return fail(guest, reason.to_string());
        }
        Ending::Own(Stop::DebugExit(code)) => {
            record(EventKind::VmDebugExit { name: name.clone(), code });
            Stop::DebugExit(code).to_string()
        }
        Ending::Own(stop) => stop.to_string(),
        Ending::Stopped => "stopped by the operator".to_string(),
        Ending::GivenUp => format!("stopped by on_panic: {}", guest.status().reason.unwrap_or_default()),
    };
    guest.note_end(VmState::Stopped, Some(reason.clone()), EventKind::VmStopped { name, reason });
}

/// The guest could not be started or go on.
pub fn fail(guest: &Guest, reason: String) {
    log::error!("guest {}: {reason}", guest.config.name);
    let event = EventKind::VmFailed { name: guest.config.name.clone(), reason: reason.clone() };
    guest.note_end(VmState::Failed, Some(reason), event);
}
