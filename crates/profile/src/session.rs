// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owner of a profile. There is one profile at a time, and it ends by itself when no client asks for its samples any
//! more.

/// The most samples of each CPU in a second.
pub const MOST_HZ: u32 = 1000;
/// The most samples of all CPUs together in a second: this bounds the cost to the CPU that sends the interrupts.
pub const MOST_PER_SECOND: u64 = 20_000;
/// A profile ends after this time without a request for its samples.
pub const SILENCE_NS: u64 = 5_000_000_000;

const US_PER_SECOND: u64 = 1_000_000;

/// The time between two samples of a CPU, if so many a second are wanted: at least one a second, and never more
/// than the limits.
pub fn period_us(hz: u32, cpus: u32) -> u64 {
    let wanted = US_PER_SECOND / u64::from(hz.clamp(1, MOST_HZ));
    wanted.max(u64::from(cpus) * US_PER_SECOND / MOST_PER_SECOND)
}

/// A profile that is being taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    by: u32,
    heard_ns: u64,
}

impl Session {
    /// Begins a profile for the client `by`.
    pub fn begin(by: u32, now_ns: u64) -> Self {
        Self { by, heard_ns: now_ns }
    }

    /// Returns whether it is this client's.
    pub fn is_of(&self, by: u32) -> bool {
        self.by == by
    }

    /// Notes that `by` asks for samples. Returns `false` if the profile is another client's.
    pub fn hear(&mut self, by: u32, now_ns: u64) -> bool {
        let is_mine = self.by == by;
        if is_mine {
            self.heard_ns = now_ns;
        }
        is_mine
    }

    /// Returns whether no client asks any more.
    pub fn is_abandoned(&self, now_ns: u64) -> bool {
        now_ns >= self.heard_ns.saturating_add(SILENCE_NS)
    }
}
