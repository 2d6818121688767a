// SPDX-License-Identifier: MIT OR Apache-2.0
//! A limit on signatures that are wrong.

/// Wrong signatures that may follow each other at once.
const BURST: u32 = 16;
/// The time after which one more may be wrong.
const INTERVAL_NS: u64 = 100_000_000;

/// A limit on wrong signatures. A check takes the first CPU some hundred microseconds, which its guests wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failures {
    left: u32,
    grown_ns: u64,
}

impl Failures {
    pub const fn new() -> Self {
        Self { left: BURST, grown_ns: 0 }
    }

    /// Returns whether a signature may be checked now.
    pub fn may_check(&mut self, now_ns: u64) -> bool {
        let grown = now_ns.saturating_sub(self.grown_ns) / INTERVAL_NS;
        if grown > 0 {
            self.left = u32::try_from(grown).unwrap_or(BURST).saturating_add(self.left).min(BURST);
            self.grown_ns = now_ns;
        }
        self.left > 0
    }

    /// Counts a wrong signature.
    pub fn note(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}
