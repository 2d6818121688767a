// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened to guests and host: kept for the control channel, printed in the log.

use alloc::collections::VecDeque;

use spin::Mutex;
use wire::{Event, EventKind};

use crate::arch::percpu::{BOOT_PROCESSOR, wake};
use crate::arch::timer;
use crate::guest::GUESTS;
use crate::restart::inherited;
use crate::timeline::{self, Name};

/// Events that are kept.
const KEPT: usize = 256;

struct Events {
    kept: VecDeque<Event>,
    next_sequence: u64,
}

static EVENTS: Mutex<Events> = Mutex::new(Events { kept: VecDeque::new(), next_sequence: 0 });

/// Records an event.
pub fn record(kind: EventKind) {
    draw(&kind);
    log::info!("{kind}");
    {
        let mut events = EVENTS.lock();
        let sequence = events.next_sequence;
        events.next_sequence += 1;
        if events.kept.len() == KEPT {
            events.kept.pop_front();
        }
        events.kept.push_back(Event { sequence, time_ns: timer::uptime_ns(), kind });
    }
    wake(BOOT_PROCESSOR);
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
    let guest = GUESTS.get().and_then(|guests| guests.named(name));
    guest.into_iter().for_each(|guest| timeline::instant(event, guest.number));
}

/// The number that the next event gets; 0 if somebody holds the events and does not let go.
pub fn next_sequence() -> u64 {
    const PATIENCE: u32 = 1_000_000;
    (0..PATIENCE).find_map(|_| EVENTS.try_lock()).map_or(0, |events| events.next_sequence)
}

/// Counts on from the image before.
pub fn continue_from(sequence: u64) {
    let mut events = EVENTS.lock();
    events.next_sequence = events.next_sequence.max(sequence);
}

/// Calls `visit` with the kept events from `sequence` on while it returns true; returns the sequence to ask for next.
pub fn read_from(sequence: u64, mut visit: impl FnMut(&Event) -> bool) -> u64 {
    let events = EVENTS.lock();
    let mut next = sequence;
    for event in events.kept.iter().filter(|event| event.sequence >= sequence) {
        if !visit(event) {
            return next;
        }
        next = event.sequence + 1;
    }
    next
}
