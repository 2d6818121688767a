// SPDX-License-Identifier: MIT OR Apache-2.0
//! Use of the state that [`inherited`] has read, in an image that replaced another one: it continues events and
//! logs, and gives the memory back.

use crate::guests::events;
use crate::kernel::console;
use crate::kernel::{inherited, outcome};

/// Continues the events of the image before, once there is memory.
pub fn take_events() {
    inherited::with_events(events::adopt);
}

/// Records which image replaced which, if one did.
pub fn record_succession() {
    if let Some((old, new)) = inherited::succession() {
        events::record(wire::EventKind::ImageReplaced { old, new, signer: inherited::signer() });
    }
}

/// The CPUs with these APIC identifiers are online, and no other is expected: what the image before left is read for
/// the last time, and its memory becomes free.
pub fn give_back(online: &[u32]) {
    if inherited::give_back(online, console::log::collect) {
        outcome::note_cpus(online.len() as u32);
    }
}
