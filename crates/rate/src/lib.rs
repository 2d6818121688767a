// SPDX-License-Identifier: MIT OR Apache-2.0
//! A token bucket: when what has a rate may go. It counts bytes, or requests, as its user wants.

#![no_std]
#![warn(missing_docs)]

/// The bucket holds what the rate yields in this part of a second, unless its user needs more.
const BURST_PARTS: u64 = 50;
const NS_PER_S: u64 = 1_000_000_000;

/// A token bucket. Something may go while it is not empty, and may take more than there is, so that what is longer than
/// the bucket is not delayed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    per_s: u64,
    burst: u64,
    /// Below zero: what has been taken in advance.
    level: i64,
    filled_ns: u64,
}

impl Bucket {
    /// A full bucket at a time. It holds a fiftieth of a second's yield, and `least` at least.
    pub fn new(per_s: u64, least: u64, now_ns: u64) -> Self {
        let per_s = per_s.clamp(1, i64::MAX as u64 / NS_PER_S);
        let burst = (per_s / BURST_PARTS).max(least).clamp(1, i64::MAX as u64);
        Self { per_s, burst, level: burst as i64, filled_ns: now_ns }
    }

    /// Fills it up to a time.
    fn fill(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns);
        let added = u128::from(self.per_s) * u128::from(elapsed_ns) / u128::from(NS_PER_S);
        if added == 0 {
            return;
        }
        let added = i64::try_from(added).unwrap_or(i64::MAX);
        self.level = self.level.saturating_add(added).min(self.burst as i64);
        // A part of less than one is kept as time.
        self.filled_ns = match self.level == self.burst as i64 {
            true => now_ns,
            false => self.filled_ns + (u128::from(added as u64) * u128::from(NS_PER_S) / u128::from(self.per_s)) as u64,
        };
    }

    /// Returns whether something may go now.
    ///
    /// # Errors
    /// The time at which the bucket is not empty any more.
    pub fn check(&mut self, now_ns: u64) -> Result<(), u64> {
        self.fill(now_ns);
        if self.level > 0 {
            return Ok(());
        }
        let missing = 1 + self.level.unsigned_abs();
        let wait_ns = (u128::from(missing) * u128::from(NS_PER_S)).div_ceil(u128::from(self.per_s));
        Err(self.filled_ns.saturating_add(u64::try_from(wait_ns).unwrap_or(u64::MAX)).max(now_ns.saturating_add(1)))
    }

    /// Takes what goes.
    pub fn take(&mut self, amount: u64) {
        self.level = self.level.saturating_sub(i64::try_from(amount).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests;
