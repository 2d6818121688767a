// SPDX-License-Identifier: MIT OR Apache-2.0
//! One entity: its weight, its virtual time, where its time went.

use crate::pace::Ticks;
use crate::weight::Weight;

/// State of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for something and wants no CPU.
    Blocked,
    /// It waits for the CPU.
    Runnable,
    /// It has the CPU.
    Running,
}

/// Use of an entity's time; together the time since it was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Times {
    /// It had the CPU.
    pub running: Ticks,
    /// It wanted the CPU and others had it: the guest calls this time stolen.
    pub stolen: Ticks,
    /// It wanted no CPU.
    pub blocked: Ticks,
}

/// The time that an entity has run, divided by its weight. The clock has 64 bits, so this never wraps.
pub(crate) type VirtualTime = u64;

/// One entity, except its virtual time and its state: the queue keeps these where they can be compared fast.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub(crate) weight: Weight,
    /// The fraction of virtual time beyond whole units, in units of 2^-32: however often time is booked, none is lost.
    fraction: u32,
    /// 2^32 / weight: a multiplication charges the entity, not a division.
    inverse_weight: u64,
    /// Since when its time is not yet in `times`.
    since: Ticks,
    times: Times,
}

fn inverse(weight: Weight) -> u64 {
    (1 << 32) / u64::from(weight.get())
}

impl Entity {
    pub(crate) fn new(weight: Weight, now: Ticks) -> Self {
        Self { weight, fraction: 0, inverse_weight: inverse(weight), since: now, times: Times::default() }
    }

    /// Sets its weight, and returns the one before. Its time is booked.
    pub(crate) fn set_weight(&mut self, weight: Weight) -> Weight {
        self.inverse_weight = inverse(weight);
        core::mem::replace(&mut self.weight, weight)
    }

    /// The virtual time that this entity spends in so many ticks of running.
    #[inline]
    pub(crate) fn virtual_span(&self, ticks: u64) -> VirtualTime {
        ((u128::from(ticks) * u128::from(self.inverse_weight)) >> 32) as u64
    }

    /// Books the time since it was last booked, in which the entity had the CPU: the virtual time spent.
    #[inline]
    pub(crate) fn book_running(&mut self, now: Ticks) -> VirtualTime {
        let span = self.take_span(now);
        self.times.running.0 += span;
        let spent = u128::from(span) * u128::from(self.inverse_weight) + u128::from(self.fraction);
        self.fraction = spent as u32;
        (spent >> 32) as u64
    }

    /// The same for time in which it waited for the CPU.
    #[inline]
    pub(crate) fn book_stolen(&mut self, now: Ticks) {
        self.times.stolen.0 += self.take_span(now);
    }

    /// The same for time in which it wanted no CPU.
    #[inline]
    pub(crate) fn book_blocked(&mut self, now: Ticks) {
        self.times.blocked.0 += self.take_span(now);
    }

    #[inline]
    fn take_span(&mut self, now: Ticks) -> u64 {
        let span = now.0.saturating_sub(self.since.0);
        self.since = now;
        span
    }

    /// Returns the use of its time, up to now, given its present state.
    pub(crate) fn times(&self, state: State, now: Ticks) -> Times {
        let mut times = self.times;
        let current = match state {
            State::Running => &mut times.running,
            State::Runnable => &mut times.stolen,
            State::Blocked => &mut times.blocked,
        };
        current.0 += now.0.saturating_sub(self.since.0);
        times
    }
}
