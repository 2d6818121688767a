// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sliver of time: so much running in each window, sleep for the rest of it.
//!
//! A weight shares a CPU among those that want it; an entity that is alone has all of it, however small its weight. A
//! throttle is for an entity that must not even have that: it makes no progress by running, and a CPU that halts costs
//! less than one that spins. It still gets a turn in every window, so that the event that it waits for (a time-out, a
//! reset) happens.
//!
//! The length of a window depends on the event that it waits for. A kernel that counts down to its reboot does so in
//! delays of a millisecond, each of which begins when the one before has ended: asleep for a tenth of a second it would
//! count one where there were a hundred. So it has a turn for each ([`Sliver::EveryMillisecond`]), which costs more,
//! but not for long.

use crate::pace::Ticks;

/// Division of a throttled share into slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sliver {
    /// One millisecond of every hundred: for an entity that waits for nothing.
    Rare,
    /// 50 µs of every 1.1 ms: for an entity that counts milliseconds.
    EveryMillisecond,
}

impl Sliver {
    /// Window and allowance in microseconds.
    pub const fn microseconds(self) -> (u64, u64) {
        match self {
            Self::Rare => (100_000, 1_000),
            Self::EveryMillisecond => (1_100, 50),
        }
    }
}

/// Use of its share by a throttled entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    ticks_per_ms: u64,
    sliver: Sliver,
    window_start: u64,
    used: u64,
}

impl Throttle {
    /// Returns a throttle with a first window that begins at `now` and its allowance used up: the entity has just run.
    pub const fn new(ticks_per_ms: u64, sliver: Sliver, now: Ticks) -> Self {
        let ticks_per_ms = if ticks_per_ms == 0 { 1 } else { ticks_per_ms };
        Self { ticks_per_ms, sliver, window_start: now.0, used: u64::MAX }
    }

    /// Sets the division into slices from now on.
    pub fn cut(&mut self, sliver: Sliver) {
        self.sliver = sliver;
    }

    /// Returns when the entity must have stopped if it starts to run at `now`.
    pub fn stop_at(&mut self, now: Ticks) -> Ticks {
        let (window, allowance) = self.ticks();
        if now.0.saturating_sub(self.window_start) >= window {
            (self.window_start, self.used) = (now.0, 0);
        }
        Ticks(now.0.saturating_add(allowance.saturating_sub(self.used)))
    }

    /// Counts the time that it has run up to now. If that uses up its allowance in this window, returns the time at
    /// which the next one begins.
    pub fn charge(&mut self, ran: Ticks) -> Option<Ticks> {
        let (window, allowance) = self.ticks();
        self.used = self.used.saturating_add(ran.0);
        (self.used >= allowance).then(|| Ticks(self.window_start.saturating_add(window)))
    }

    fn ticks(&self) -> (u64, u64) {
        let (window, allowance) = self.sliver.microseconds();
        let ticks = |microseconds: u64| (u128::from(self.ticks_per_ms) * u128::from(microseconds) / 1000) as u64;
        (ticks(window).max(1), ticks(allowance).max(1))
    }
}
