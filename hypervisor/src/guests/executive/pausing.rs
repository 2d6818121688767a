// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pausing and resuming guests: by the operator, or because their kernel has failed.

use alloc::sync::Arc;

use bundle::OnPanic;
use wire::EventKind;

use crate::guests::events::record;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::instance::ending::Ending;

/// Pauses or resumes a guest for the operator.
pub fn pause(guest: &Guest, instance: &Arc<Instance>, is_paused: bool) {
    if instance.is_paused() == is_paused || instance.is_ending() {
        return;
    }
    let name = guest.config.name.clone();
    if is_paused {
        instance.set_paused(true);
        guest.mark_paused();
        freeze(guest, instance);
        record(EventKind::VmPaused { name });
    } else {
        guest.frozen.release();
        instance.end_saving();
        guest.mark_resumed();
        instance.set_paused(false);
        record(EventKind::VmResumed { name });
    }
}

/// Applies the policy for a guest with a failed kernel.
pub fn give_up(guest: &Guest, instance: &Arc<Instance>) {
    match guest.settings.on_panic() {
        OnPanic::Throttle | OnPanic::Ignore => {}
        OnPanic::Stop => instance.end(Ending::GivenUp),
        OnPanic::Reset => instance.end(Ending::Reset),
        OnPanic::Dump if instance.is_paused() || instance.is_ending() => {}
        OnPanic::Dump => {
            instance.set_paused(true);
            freeze(guest, instance);
            record(EventKind::VmHeld { name: guest.config.name.clone() });
        }
    }
}

/// Makes the run readable: its vCPUs stop soon.
fn freeze(guest: &Guest, instance: &Arc<Instance>) {
    guest.frozen.hold(instance.clone());
    if instance.is_ending() {
        // It ended meanwhile, and may not be kept.
        guest.frozen.release();
    }
}
