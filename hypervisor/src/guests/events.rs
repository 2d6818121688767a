// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of guests and host: kept for the control channel, printed in the log.

use spin::{Mutex, MutexGuard};
use wire::history::History;
use wire::{Event, EventKind};

use crate::arch::percpu::{BOOT_CPU, wake};
use crate::arch::timer;
use crate::guests::slots::GUESTS;
use crate::kernel::inherited;
use crate::kernel::timeline::{self, Name};

static EVENTS: Mutex<History> = Mutex::new(History::new());

/// Records an event.
pub fn record(kind: EventKind) {
    draw(&kind);
    log::info!("{kind}");
    EVENTS.lock().push(timer::uptime_ns(), kind);
    wake(BOOT_CPU);
}

/// Puts an event on the timeline.
fn draw(kind: &EventKind) {
    let (event, name) = match kind {
        EventKind::HostReady => return timeline::instant(Name::HostReady, inherited::generation() as u32),
        EventKind::CpuOnline { index } => return timeline::instant(Name::Online, *index),
        EventKind::CpuOffline { index } => return timeline::instant(Name::Offline, *index),
        EventKind::VmStarted { name } => (Name::GuestStarted, name),
        EventKind::VmStopped { name, .. } | EventKind::VmReset { name } => (Name::GuestEnded, name),
        EventKind::VmFailed { name, .. } => (Name::GuestFailed, name),
        EventKind::VmPaused { name } | EventKind::VmHeld { name } => (Name::GuestPaused, name),
        EventKind::VmResumed { name } => (Name::GuestResumed, name),
        EventKind::VmPanicked { name } | EventKind::VmHung { name, .. } => (Name::GuestUnwell, name),
        _ => return,
    };
    GUESTS.named(name).into_iter().for_each(|guest| timeline::instant(event, guest.number));
}

/// Locks the events; `None` if a CPU that was stopped amid an event holds them.
fn patiently() -> Option<MutexGuard<'static, History>> {
    const PATIENCE_US: u64 = 250_000;
    timer::try_for(PATIENCE_US, || EVENTS.try_lock())
}

/// The number that the next event gets; 0 if a stopped CPU holds the events.
pub fn next_sequence() -> u64 {
    patiently().map_or(0, |events| events.next_sequence())
}

/// Writes the events for the next image; returns how many bytes that are. Allocates nothing, and waits for no lock
/// for ever.
pub fn save(into: &mut [u8]) -> usize {
    let Some(events) = patiently() else { return 0 };
    let (first, second) = events.bytes();
    let Some((head, tail)) = into.split_at_mut_checked(first.len()) else { return 0 };
    let Some(tail) = tail.get_mut(..second.len()) else { return 0 };
    head.copy_from_slice(first);
    tail.copy_from_slice(second);
    first.len() + second.len()
}

/// Goes on with the events of the image before: those that it has left in `bytes`, and its numbers.
pub fn adopt(bytes: &[u8], next_sequence: u64) {
    EVENTS.lock().adopt(bytes, next_sequence);
}

/// Shows the kept events from `sequence` on while `visit` returns true; returns the number to ask for next.
/// Allocates nothing, and waits for no lock for ever.
pub fn visit_from(sequence: u64, visit: impl FnMut(&Event) -> bool) -> u64 {
    patiently().map_or(sequence, |events| events.visit(sequence, visit))
}
