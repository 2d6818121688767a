// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of a host's log and its events: the last ones, and counts of all.
//!
//! The host sends each unasked, and in pages when it is asked; one that comes twice is kept once. Both are numbered by
//! the host. A host that was powered on again begins with 0.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use wire::{Event, EventKind, Level, LogRecord};

#[cfg(test)]
mod tests;

/// The most records of a log that are kept.
const MAX_LOG: usize = 2000;
/// The most events that are kept.
const MAX_EVENTS: usize = 1000;
/// The beginning of the record by which a host logs a roll-back, also of an update that was asked for elsewhere.
const ROLLED_BACK: &str = "the update was rolled back after";

/// A record, with the number that the service has given it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept<T> {
    /// Rises by one with each record of this host, log and events apart, since the service started.
    pub id: u64,
    /// Records before it that were lost in the host.
    pub lost: u64,
    /// The record.
    #[serde(flatten)]
    pub record: T,
}

/// Records of a host's log and its events.
#[derive(Debug, Default)]
pub struct Records {
    /// The last ones of the log.
    pub log: VecDeque<Kept<LogRecord<'static>>>,
    /// The last events.
    pub events: VecDeque<Kept<Event>>,
    /// Number of events by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Number of records of the log by level.
    pub levels: BTreeMap<Level, u64>,
    /// Number of records and events that were lost in the host.
    pub lost: u64,
    /// Updates that were rolled back.
    pub rolled_back: u64,
    /// The number expected next of each CPU's log.
    next: BTreeMap<u32, u64>,
    next_event: u64,
    last_id: u64,
    last_event_id: u64,
}

impl Records {
    /// The host begins to number again: it was powered on.
    pub fn begin_again(&mut self) {
        self.next.clear();
        self.next_event = 0;
    }

    /// Keeps a record of the log; `None` if it is there already.
    pub fn note(&mut self, record: LogRecord<'static>) -> Option<Kept<LogRecord<'static>>> {
        let next = self.next.entry(record.cpu).or_default();
        let lost = record.sequence.checked_sub(*next)?;
        *next = record.sequence.saturating_add(1);
        self.last_id += 1;
        self.lost = self.lost.saturating_add(lost);
        *self.levels.entry(record.level).or_default() += 1;
        self.rolled_back += u64::from(record.text.starts_with(ROLLED_BACK));
        let kept = Kept { id: self.last_id, lost, record };
        keep(&mut self.log, kept.clone(), MAX_LOG);
        Some(kept)
    }

    /// Keeps an event; `None` if it is there already.
    pub fn note_event(&mut self, event: Event) -> Option<Kept<Event>> {
        let lost = event.sequence.checked_sub(self.next_event)?;
        self.next_event = event.sequence.saturating_add(1);
        self.last_event_id += 1;
        self.lost = self.lost.saturating_add(lost);
        *self.kinds.entry(kind(&event.kind)).or_default() += 1;
        let kept = Kept { id: self.last_event_id, lost, record: event };
        keep(&mut self.events, kept.clone(), MAX_EVENTS);
        Some(kept)
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T, most: usize) {
    if all.len() >= most {
        all.pop_front();
    }
    all.push_back(one);
}

/// Returns an event's kind, as its JSON names it.
pub fn kind(event: &EventKind) -> &'static str {
    match event {
        EventKind::HostReady => "host-ready",
        EventKind::Garbage { .. } => "garbage",
        EventKind::VmStarted { .. } => "vm-started",
        EventKind::VmStopped { .. } => "vm-stopped",
        EventKind::VmPaused { .. } => "vm-paused",
        EventKind::VmResumed { .. } => "vm-resumed",
        EventKind::VmReset { .. } => "vm-reset",
        EventKind::VmPanicked { .. } => "vm-panicked",
        EventKind::VmFailed { .. } => "vm-failed",
        EventKind::VmDebugExit { .. } => "vm-debug-exit",
        EventKind::VmHung { .. } => "vm-hung",
        EventKind::VmThrottled { .. } => "vm-throttled",
        EventKind::VmRecovered { .. } => "vm-recovered",
        EventKind::VmHeld { .. } => "vm-held",
        EventKind::CpuOnline { .. } => "cpu-online",
        EventKind::CpuOffline { .. } => "cpu-offline",
        EventKind::CpuFailed { .. } => "cpu-failed",
        EventKind::HostRestarts { .. } => "host-restarts",
        EventKind::HostUpdated { .. } => "host-updated",
        EventKind::ImageReplaced { .. } => "image-replaced",
        EventKind::HardwareError { is_corrected: true, .. } => "hardware-error-corrected",
        EventKind::HardwareError { is_corrected: false, .. } => "hardware-error-uncorrected",
        EventKind::AccessRefused { .. } => "access-refused",
        EventKind::FunctionStopped { .. } => "function-stopped",
        EventKind::FunctionAssigned { .. } => "function-assigned",
        EventKind::FunctionReleased { .. } => "function-released",
        EventKind::UpdateConfirmed { .. } => "update-confirmed",
        EventKind::UpdateReturns { .. } => "update-returns",
        EventKind::UpdateStays { .. } => "update-stays",
    }
}
