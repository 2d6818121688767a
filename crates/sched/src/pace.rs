// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations: constants in milliseconds, and the same in ticks of the caller's clock.

use crate::weight::Weight;

/// The time in which every runnable entity has its turn, if none of them would get less than [`LEAST_SLICE_MS`].
pub const PERIOD_MS: u64 = 6;
/// No slice is shorter: a switch costs the caches more than the instructions it takes.
pub const LEAST_SLICE_MS: u64 = 1;
/// Most virtual time in ms that a sleeper keeps as its credit when it wakes.
pub const SLEEPER_CREDIT_MS: u64 = 3;
/// A sleeper that wakes takes the CPU at once if it could run for this long before the running one is due again.
pub const WAKE_MARGIN_MS: u64 = 1;

/// Beyond any clock; keeps products of ticks and weights inside 64 bits.
const MOST_TICKS_PER_MS: u64 = 1 << 40;

const _: () = assert!(WAKE_MARGIN_MS < SLEEPER_CREDIT_MS && LEAST_SLICE_MS <= PERIOD_MS);

/// A time, or a span of it, on the clock that the caller uses: the CPU's time stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ticks(pub u64);

/// The constants in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    period: u64,
    least_slice: u64,
    pub(crate) sleeper_credit: u64,
    pub(crate) wake_margin: u64,
}

impl Pace {
    /// A rate that no clock has is taken for the nearest one that could be.
    pub(crate) const fn new(ticks_per_ms: u64) -> Self {
        let ticks_per_ms = match ticks_per_ms {
            0 => 1,
            1..=MOST_TICKS_PER_MS => ticks_per_ms,
            _ => MOST_TICKS_PER_MS,
        };
        Self {
            period: PERIOD_MS * ticks_per_ms,
            least_slice: LEAST_SLICE_MS * ticks_per_ms,
            sleeper_credit: SLEEPER_CREDIT_MS * ticks_per_ms,
            wake_margin: WAKE_MARGIN_MS * ticks_per_ms,
        }
    }

    /// Returns how long an entity runs before others have their turn, given the weight of all that are awake.
    #[inline]
    pub(crate) fn slice(&self, weight: Weight, total_weight: u32) -> u64 {
        let share = self.period * u64::from(weight.get()) / u64::from(total_weight.max(1));
        share.max(self.least_slice)
    }
}
