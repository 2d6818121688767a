// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that are refused so often that they have to be stopped: what they do fills a unit's log, and other
//! functions' refused accesses are lost.
//!
//! Each function has a leaky bucket. A poll of a unit adds what it has found of the function, 16 at most, and 64 a
//! second drain off. A poll sees only a part of a storm: a log of AMD-Vi has room for 512 events, VT-d may have a
//! single fault record and may merge a function's faults in it (section 7.2.1). So the caller polls again soon
//! ([`QUICK_POLL_US`]) as long as it finds anything. At 500 requests a second or more each such poll finds some. One
//! that is late because its CPU was busy counts as if it had come in time: else a busy host would stop nothing.
//!
//! | requests | the function is stopped |
//! |---|---|
//! | 8,000 a second and more | after 32 ms |
//! | 500 a second | after 0.6 s |
//! | up to 64 a second | never |
//! | a burst of any number within 15 ms, such as one wrong transfer | not for that |

use arrayvec::ArrayVec;
use pci::Bdf;

/// Microseconds to the next poll after one that has found anything.
pub const QUICK_POLL_US: u64 = 2_000;
/// Functions that are distinguished. One more takes the place of the one with the least in its bucket.
pub const MAX_STORMING: usize = 32;
/// The most that one poll adds to a bucket.
const PER_POLL: u32 = 16;
/// Requests that drain off in a second.
const DRAINED_PER_SECOND: u64 = 64;
/// A function is stopped when its bucket holds this many requests.
const LIMIT: u32 = 256;

/// A function that has to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    /// The function.
    pub source: Bdf,
    /// Its refused requests that polls have found. It may have made many more.
    pub refused: u64,
    /// Since when, in ticks of the caller's clock.
    pub ticks: u64,
}

/// The leaky bucket of one function.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    source: Bdf,
    level: u32,
    /// Requests that the poll under way has added.
    added: u32,
    /// Until when it has drained, by the time that counts.
    drained_at: u64,
    /// Time when it was empty last; `refused` counts since then.
    began: u64,
    refused: u64,
}

/// The buckets of all functions.
#[derive(Clone, Debug)]
pub struct Storms {
    /// In which one request drains off; never zero.
    ticks_per_request: u64,
    /// The most that counts of the time between two polls, of which the first has found anything.
    most_between: u64,
    /// The time that has counted so far, and when it was last added to.
    clock: u64,
    counted_at: u64,
    has_found: bool,
    buckets: ArrayVec<Bucket, MAX_STORMING>,
}

impl Storms {
    /// Creates it for a clock of `ticks_per_second`.
    pub fn new(ticks_per_second: u64) -> Self {
        Self {
            ticks_per_request: (ticks_per_second / DRAINED_PER_SECOND).max(1),
            most_between: ticks_per_second / (1_000_000 / (2 * QUICK_POLL_US)),
            clock: 0,
            counted_at: 0,
            has_found: false,
            buckets: ArrayVec::new(),
        }
    }

    /// Notes a refused request that a poll has found.
    pub fn note(&mut self, source: Bdf, now: u64) {
        self.count(now);
        let index = self.index_of(source, now);
        let Some(bucket) = self.buckets.get_mut(index) else { return };
        bucket.drain(self.clock, self.ticks_per_request);
        if bucket.held() == 0 {
            *bucket = Bucket::new(source, self.clock, now);
        }
        bucket.added = (bucket.added + 1).min(PER_POLL);
        bucket.refused = bucket.refused.saturating_add(1);
    }

    /// Ends a poll; returns the functions that are to be stopped. Their count begins again if they go on.
    pub fn end_poll(&mut self, now: u64) -> ArrayVec<Storm, MAX_STORMING> {
        self.count(now);
        self.has_found = self.buckets.iter().any(|bucket| bucket.added > 0);
        let mut storms = ArrayVec::new();
        self.buckets.retain(|bucket| {
            bucket.level += core::mem::take(&mut bucket.added);
            let is_storm = bucket.level >= LIMIT;
            if is_storm {
                let ticks = now.saturating_sub(bucket.began);
                storms.push(Storm { source: bucket.source, refused: bucket.refused, ticks });
            }
            !is_storm
        });
        storms
    }

    fn count(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.counted_at);
        let counted = if self.has_found { elapsed.min(self.most_between) } else { elapsed };
        self.clock = self.clock.saturating_add(counted);
        self.counted_at = now;
    }

    fn index_of(&mut self, source: Bdf, now: u64) -> usize {
        if let Some(index) = self.buckets.iter().position(|bucket| bucket.source == source) {
            return index;
        }
        if self.buckets.is_full() {
            let least = (0..self.buckets.len()).min_by_key(|index| self.buckets[*index].held());
            least.into_iter().for_each(|index| _ = self.buckets.swap_remove(index));
        }
        self.buckets.push(Bucket::new(source, self.clock, now));
        self.buckets.len() - 1
    }
}

impl Bucket {
    fn new(source: Bdf, clock: u64, now: u64) -> Self {
        Self { source, level: 0, added: 0, drained_at: clock, began: now, refused: 0 }
    }

    fn held(&self) -> u32 {
        self.level + self.added
    }

    /// Removes the requests that have drained off by now. The rest of a request's time counts the next time.
    fn drain(&mut self, clock: u64, ticks_per_request: u64) {
        let drained = clock.saturating_sub(self.drained_at) / ticks_per_request;
        self.level = u64::from(self.level).saturating_sub(drained) as u32;
        self.drained_at += drained * ticks_per_request;
    }
}

#[cfg(test)]
#[path = "storm_tests.rs"]
mod tests;
