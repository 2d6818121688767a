// SPDX-License-Identifier: MIT OR Apache-2.0
//! A limit on how often a receiver refuses what it could not read.
//!
//! A refusal is an answer. On a line that sends back what it is given (a loopback plug, a terminal that echoes) each
//! answer would come back, be no request, and be refused again, without end. Noise without end would fill the record of
//! events, too.

/// Refusals that may follow each other at once.
const BURST: u32 = 16;

/// A limit on the rate of refusals.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    left: u32,
    /// Time when it last grew, in the caller's ticks.
    grown_at: u64,
    left_out: u32,
}

impl Default for Quota {
    fn default() -> Self {
        Self::new()
    }
}

impl Quota {
    /// Returns a quota of which nothing is used.
    pub const fn new() -> Self {
        Self { left: BURST, grown_at: 0, left_out: 0 }
    }

    /// Takes one, if there is one left: then returns how many were left out since the last. One comes back after each
    /// `interval` ticks, up to sixteen.
    pub fn take(&mut self, now: u64, interval: u64) -> Option<u32> {
        let grown = now.saturating_sub(self.grown_at) / interval.max(1);
        if grown > 0 {
            self.left = u32::try_from(grown).unwrap_or(BURST).saturating_add(self.left).min(BURST);
            self.grown_at = now;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(core::mem::take(&mut self.left_out))
            }
            None => {
                self.left_out = self.left_out.saturating_add(1);
                None
            }
        }
    }
}
