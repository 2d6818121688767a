// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for hardware, bounded.

use crate::hardware::Hardware;

/// A port access takes at least this long, wherever it goes: the measure of waiting while there is no clock.
const LEAST_ACCESS_NS: u64 = 100;
/// Polls beyond the measure after which a clock that stands still is not believed any longer.
const CLOCK_DOUBT: u64 = 1000;

/// A wait that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    began_ns: Option<u64>,
    polls: u64,
}

impl Wait {
    /// Begins to wait.
    pub fn begin(hardware: &mut impl Hardware) -> Self {
        Self { began_ns: hardware.now_ns(), polls: 0 }
    }

    /// Counts a poll that was in vain. Returns whether the wait has lasted longer than `limit_ns` by now, by the clock
    /// or, without one, by the number of polls.
    pub fn is_over(&mut self, hardware: &mut impl Hardware, limit_ns: u64) -> bool {
        self.polls += 1;
        let by_polls_ns = self.polls.saturating_mul(LEAST_ACCESS_NS);
        let lasted_ns = match (self.began_ns, hardware.now_ns()) {
            (Some(began), Some(now)) => now.saturating_sub(began).max(by_polls_ns / CLOCK_DOUBT),
            _ => by_polls_ns,
        };
        lasted_ns > limit_ns
    }

    /// Returns whether `poll` returns true within `limit_ns`.
    pub fn until<H: Hardware>(hardware: &mut H, limit_ns: u64, mut poll: impl FnMut(&mut H) -> bool) -> bool {
        let mut wait = Self::begin(hardware);
        loop {
            if poll(hardware) {
                return true;
            }
            if wait.is_over(hardware, limit_ns) {
                return false;
            }
            hardware.pause();
        }
    }
}
