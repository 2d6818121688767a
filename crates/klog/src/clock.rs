// SPDX-License-Identifier: MIT OR Apache-2.0
//! From ticks to nanoseconds. Records keep ticks: writing one must not divide.

/// Conversion of ticks to time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Ticks at time 0.
    pub origin: u64,
    /// Ticks per second; 0 while that is not known, and all times are 0.
    pub hz: u64,
}

impl Clock {
    /// Returns nanoseconds since time 0; 0 for times before.
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        let elapsed = u128::from(ticks.saturating_sub(self.origin));
        (elapsed * 1_000_000_000).checked_div(u128::from(self.hz)).map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
