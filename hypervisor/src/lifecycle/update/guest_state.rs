// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's state in the hand-over state, written and read.

use alloc::format;
use alloc::string::{String, ToString};

use ::update::packed::{Now, Run};
use handover::layout::guests::{Guest as GuestRecord, GuestState};
use handover::layout::unpadded;
use wire::VmState;

use crate::guests::guest::{Guest, Status};
use crate::guests::instance::Instance;

/// A guest as it is now.
pub fn now(guest: &Guest) -> Now {
    let (status, _) = guest.status_and_before_pause();
    Now {
        state: number(guest, status.state).map(|state| state as u32).ok(),
        run: guest.run::<Instance>().map(|run| run_now(&run)),
        has_orders: guest.has_orders(),
    }
}

/// A run as it is now.
pub fn run_now(run: &Instance) -> Run {
    Run { nested_root: run.space_root(), is_paused: run.is_paused(), is_ending: run.is_ending() }
}

/// The number of a state.
///
/// # Errors
/// A guest in it cannot be handed over.
pub fn number(guest: &Guest, state: VmState) -> Result<GuestState, String> {
    Ok(match state {
        VmState::Running => GuestState::Running,
        VmState::Paused => GuestState::Paused,
        VmState::Stopped => GuestState::Stopped,
        VmState::Failed => GuestState::Failed,
        VmState::Panicked => GuestState::Panicked,
        VmState::Hung => GuestState::Hung,
        other => return Err(format!("guest '{}' is {other}", guest.config.name)),
    })
}

/// Reads a guest's status.
pub fn status(from: &GuestRecord) -> Status {
    with_number(from.state.get(), from.since_ns.get(), from)
}

/// Reads the status with the number of a state.
fn with_number(number: u32, since_ns: u64, from: &GuestRecord) -> Status {
    let state = match GuestState::from_number(number) {
        Some(GuestState::Running) => VmState::Running,
        Some(GuestState::Paused) => VmState::Paused,
        Some(GuestState::Panicked) => VmState::Panicked,
        Some(GuestState::Hung) => VmState::Hung,
        Some(GuestState::Stopped) => VmState::Stopped,
        Some(GuestState::Failed) | None => VmState::Failed,
    };
    let reason = unpadded(&from.reason);
    Status { state, since_ns, reason: (!reason.is_empty()).then(|| reason.to_string()) }
}

/// The status that it had before it was paused, if it is.
pub fn before_pause(from: &GuestRecord) -> Option<Status> {
    let number = from.state_before_pause.get();
    (number != 0).then(|| with_number(number, from.since_before_pause_ns.get(), from))
}
