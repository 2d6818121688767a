// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records of a host's log and its events: the last ones, and counts of all.
//!
//! The host sends each unasked, and in pages when it is asked; one that comes twice is kept once. Both are numbered by
//! the host. A host that was powered on again begins with 0.

mod roll_back;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use wire::{Event, EventKind, Level, LogRecord};

use self::roll_back::{OTHER, reasons};

#[cfg(test)]
mod tests;

/// The most records of a log that are kept.
pub(super) const MAX_LOG: usize = 2000;
/// The most events that are kept.
pub(super) const MAX_EVENTS: usize = 1000;
/// The most by which the time of a host's boot changes with the clocks. A machine is not powered on twice within it.
const CLOCK_STEP_MS: u64 = 60_000;

/// A record, with the number that the service has given it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept<T> {
    /// Rises by one with each record of this host, log and events apart, since the history began.
    pub id: u64,
    /// The time at which it was made, by the service's clock: milliseconds since 1970.
    pub at_ms: u64,
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
    /// Counts of all.
    pub counts: Counts,
}

/// Counts of records, which the history keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Number of events by kind.
    pub kinds: BTreeMap<String, u64>,
    /// Number of records of the log by level.
    pub levels: BTreeMap<Level, u64>,
    /// Number of records and events that were lost in the host.
    pub lost: u64,
    /// Updates that were rolled back.
    pub rolled_back: u64,
    /// The same by reason; those of older records have none.
    rolled_back_by: BTreeMap<String, u64>,
    /// The host's last reading.
    pub place: Option<Place>,
    /// The number expected next of each CPU's log.
    next: BTreeMap<u32, u64>,
    next_event: u64,
    last_id: u64,
    last_event_id: u64,
}

/// A moment in the life of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Images that have run since the machine was powered on.
    pub generation: u64,
    /// Nanoseconds since the host was entered.
    pub uptime_ns: u64,
    /// The time at which it was entered, by the service's clock: milliseconds since 1970.
    pub booted_ms: u64,
}

impl Place {
    /// Returns whether the host was powered on again in between, while the service did not watch it.
    pub fn is_before_power_on(self, now: Self) -> bool {
        let is_back = (now.generation, now.uptime_ns) < (self.generation, self.uptime_ns);
        is_back || now.booted_ms.abs_diff(self.booted_ms) > CLOCK_STEP_MS
    }
}

impl Counts {
    /// The host begins to number again: it was powered on.
    pub fn begin_again(&mut self) {
        self.next.clear();
        self.next_event = 0;
    }

    /// Returns the number of updates that were rolled back for each reason.
    pub fn roll_backs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |reason: &str| self.rolled_back_by.get(reason).copied().unwrap_or_default();
        let known: u64 = reasons().filter(|reason| *reason != OTHER).map(count).sum();
        let other = self.rolled_back.saturating_sub(known);
        reasons().map(move |reason| (reason, if reason == OTHER { other } else { count(reason) }))
    }

    fn note_roll_back(&mut self, reason: Option<&'static str>) {
        let Some(reason) = reason else { return };
        self.rolled_back += 1;
        *self.rolled_back_by.entry(reason.to_owned()).or_default() += 1;
    }
}

impl Records {
    /// Keeps a record of the log; `None` if it is there already.
    pub fn note(&mut self, record: LogRecord<'static>, at_ms: u64) -> Option<Kept<LogRecord<'static>>> {
        let counts = &mut self.counts;
        let next = counts.next.entry(record.cpu).or_default();
        let lost = record.sequence.checked_sub(*next)?;
        *next = record.sequence.saturating_add(1);
        counts.last_id += 1;
        counts.lost = counts.lost.saturating_add(lost);
        *counts.levels.entry(record.level).or_default() += 1;
        counts.note_roll_back(roll_back::reason_of(&record.text));
        let kept = Kept { id: counts.last_id, at_ms, lost, record };
        keep(&mut self.log, kept.clone(), MAX_LOG);
        Some(kept)
    }

    /// Keeps an event; `None` if it is there already.
    pub fn note_event(&mut self, event: Event, at_ms: u64) -> Option<Kept<Event>> {
        let counts = &mut self.counts;
        let lost = event.sequence.checked_sub(counts.next_event)?;
        counts.next_event = event.sequence.saturating_add(1);
        counts.last_event_id += 1;
        counts.lost = counts.lost.saturating_add(lost);
        let is_return = matches!(event.kind, EventKind::UpdateReturns { .. });
        counts.note_roll_back(is_return.then_some(roll_back::UNCONFIRMED));
        *counts.kinds.entry(kind(&event.kind).to_owned()).or_default() += 1;
        let kept = Kept { id: counts.last_event_id, at_ms, lost, record: event };
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
        EventKind::RequestDenied { .. } => "request-denied",
        EventKind::KeyRevoked { .. } => "key-revoked",
        EventKind::Unknown | EventKind::Encoded(_) => "unknown",
        EventKind::VmCreated { .. } => "vm-created",
        EventKind::VmDeleted { .. } => "vm-deleted",
        EventKind::VmChanged { .. } => "vm-changed",
    }
}
