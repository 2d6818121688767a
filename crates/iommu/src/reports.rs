// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate limit of reports of refused accesses: a function's first access is reported at once, later ones by their
//! number, at most once in an interval. A function may be refused 100,000 times in a second.

use arrayvec::ArrayVec;
use pci::Bdf;

use crate::Fault;

/// Functions that are distinguished. One more takes the place of the one reported longest ago.
pub const MAX_SOURCES: usize = 32;

/// The accesses of one function.
#[derive(Clone, Copy, Debug)]
struct Source {
    place: Bdf,
    /// Time of its last report, in the caller's ticks.
    reported_at: u64,
    /// Accesses since then, and the first of them.
    waiting: u64,
    first: Fault,
}

/// An event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The first access since the last event of this function.
    pub first: Fault,
    /// Accesses since then.
    pub refused: u64,
}

/// The account of all functions.
#[derive(Clone, Debug)]
pub struct Reports {
    interval: u64,
    sources: ArrayVec<Source, MAX_SOURCES>,
}

impl Reports {
    /// Creates a limit with `interval` ticks from one event of a function to the next.
    pub const fn new(interval: u64) -> Self {
        Self { interval, sources: ArrayVec::new_const() }
    }

    /// Notes a refused access; returns the event if it is the function's first for a while.
    pub fn note(&mut self, fault: Fault, now: u64) -> Option<Report> {
        if let Some(source) = self.sources.iter_mut().find(|source| source.place == fault.source) {
            source.first = if source.waiting == 0 { fault } else { source.first };
            source.waiting = source.waiting.saturating_add(1);
            return source.report(now, self.interval);
        }
        if self.sources.is_full() {
            let oldest = (0..self.sources.len()).min_by_key(|index| self.sources[*index].reported_at);
            oldest.into_iter().for_each(|index| _ = self.sources.swap_remove(index));
        }
        self.sources.push(Source { place: fault.source, reported_at: now, waiting: 0, first: fault });
        Some(Report { first: fault, refused: 1 })
    }

    /// Returns an event that has become due although nothing new was refused. Callers call it until there is none.
    pub fn next_due(&mut self, now: u64) -> Option<Report> {
        let interval = self.interval;
        self.sources.iter_mut().find_map(|source| source.report(now, interval))
    }
}

impl Source {
    fn report(&mut self, now: u64, interval: u64) -> Option<Report> {
        if self.waiting == 0 || now.saturating_sub(self.reported_at) < interval {
            return None;
        }
        let report = Report { first: self.first, refused: self.waiting };
        (self.reported_at, self.waiting) = (now, 0);
        Some(report)
    }
}

#[cfg(test)]
#[path = "reports_tests.rs"]
mod tests;
