// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate at which a port may send: a token bucket of bytes.

/// The bucket holds what the rate yields in this part of a second, and one frame of the longest at least.
const BURST_PARTS: u64 = 50;
/// The least size of a bucket.
const LEAST_BURST_BYTES: u64 = 128 << 10;
const NS_PER_S: u64 = 1_000_000_000;

/// A token bucket. Frames may go while it is not empty; a frame may take more than there is, so that one that is longer
/// than what is left is not delayed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    bytes_per_s: u64,
    burst_bytes: u64,
    /// Below zero: what has been taken in advance.
    level_bytes: i64,
    filled_ns: u64,
}

impl Bucket {
    /// A full bucket at a time.
    pub fn new(bytes_per_s: u64, now_ns: u64) -> Self {
        let bytes_per_s = bytes_per_s.clamp(1, i64::MAX as u64 / NS_PER_S);
        let burst_bytes = (bytes_per_s / BURST_PARTS).max(LEAST_BURST_BYTES);
        Self { bytes_per_s, burst_bytes, level_bytes: burst_bytes as i64, filled_ns: now_ns }
    }

    /// Fills it up to a time.
    fn fill(&mut self, now_ns: u64) {
        // More than a second fills every bucket whose debt is a frame.
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns);
        let added = u128::from(self.bytes_per_s) * u128::from(elapsed_ns) / u128::from(NS_PER_S);
        if added == 0 {
            return;
        }
        let added = i64::try_from(added).unwrap_or(i64::MAX);
        self.level_bytes = self.level_bytes.saturating_add(added).min(self.burst_bytes as i64);
        // What is less than a byte is kept as time.
        self.filled_ns = match self.level_bytes == self.burst_bytes as i64 {
            true => now_ns,
            false => {
                self.filled_ns + (u128::from(added as u64) * u128::from(NS_PER_S) / u128::from(self.bytes_per_s)) as u64
            }
        };
    }

    /// Returns when a frame may go: now, or at a later time.
    ///
    /// # Errors
    /// The time at which the bucket is not empty any more.
    pub fn check(&mut self, now_ns: u64) -> Result<(), u64> {
        self.fill(now_ns);
        if self.level_bytes > 0 {
            return Ok(());
        }
        let missing = 1 + self.level_bytes.unsigned_abs();
        let wait_ns = (u128::from(missing) * u128::from(NS_PER_S)).div_ceil(u128::from(self.bytes_per_s));
        Err(self.filled_ns.saturating_add(u64::try_from(wait_ns).unwrap_or(u64::MAX)).max(now_ns.saturating_add(1)))
    }

    /// Takes the bytes of a frame that goes.
    pub fn take(&mut self, bytes: usize) {
        self.level_bytes = self.level_bytes.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}
