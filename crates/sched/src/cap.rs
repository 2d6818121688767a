// SPDX-License-Identifier: MIT OR Apache-2.0
//! An upper limit: the vCPUs of a guest together run for so much of each window, even where no other guest wants the
//! CPUs.
//!
//! A weight shares a CPU among those that want it. A cap is for what a guest has been sold, or for power: it holds on
//! an idle host, too, and over all CPUs on which the guest runs. Linux has the same for control groups (`cpu.max`), Xen
//! for domains (`cap`).
//!
//! A vCPU asks before it runs, and reports afterwards how long it has run. Several may have asked before the first one
//! reports; what they run beyond the limit is taken from the windows that follow, so that no more than the limit is
//! used over any longer time. What is not used of a window is lost: a guest that was idle does not run faster later.

use crate::pace::Ticks;

/// Length of a window in milliseconds. A guest whose share of one is used up stands still for the rest of it.
pub const CAP_WINDOW_MS: u64 = 20;
/// Least time in microseconds that a vCPU may run at once, if any of the window is left.
const LEAST_US: u64 = 100;

/// Use of its limit by one guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cap {
    window_start: u64,
    used: u64,
}

impl Cap {
    /// Returns when a vCPU must have stopped if it starts to run at `now`. `percent` of one CPU's time, at least 1, is
    /// the limit of all `vcpus` together.
    ///
    /// # Errors
    /// Nothing is left. The window in which there is something again begins at this time.
    pub fn stop_at(&mut self, now: Ticks, limit: Limit) -> Result<Ticks, Ticks> {
        let (window, quota) = (limit.window(), limit.quota());
        let windows = now.0.saturating_sub(self.window_start) / window;
        self.window_start += windows * window;
        self.used = self.used.saturating_sub(windows.saturating_mul(quota));
        match quota.checked_sub(self.used) {
            None | Some(0) => Err(Ticks(self.window_start.saturating_add(self.used / quota * window))),
            Some(left) => {
                let share = (left / u64::from(limit.vcpus.max(1))).max(limit.ticks(LEAST_US).min(left));
                Ok(Ticks(now.0.saturating_add(share)))
            }
        }
    }

    /// Counts the time for which a vCPU has run.
    pub fn charge(&mut self, ran: Ticks) {
        self.used = self.used.saturating_add(ran.0);
    }
}

/// The limit of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Ticks of the caller's clock in a millisecond.
    pub ticks_per_ms: u64,
    /// Percent of one CPU's time.
    pub percent: u32,
    /// vCPUs that share it.
    pub vcpus: u32,
}

impl Limit {
    fn window(self) -> u64 {
        self.ticks(CAP_WINDOW_MS * 1000).max(1)
    }

    /// Ticks of each window; not 0.
    fn quota(self) -> u64 {
        (u128::from(self.window()) * u128::from(self.percent) / 100).clamp(1, u128::from(u64::MAX)) as u64
    }

    fn ticks(self, microseconds: u64) -> u64 {
        (u128::from(self.ticks_per_ms) * u128::from(microseconds) / 1000) as u64
    }
}
