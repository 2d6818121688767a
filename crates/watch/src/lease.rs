// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pause that a client has to renew: the guest goes on when its reader is gone.

/// A pause that ends by itself. Times are ticks of any clock that only rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Its end, and the duration of a renewal.
    running: Option<(u64, u64)>,
}

impl Lease {
    /// None runs.
    pub const NONE: Self = Self { running: None };

    /// Begins a lease, or replaces the one that runs.
    pub fn begin(&mut self, now: u64, ticks: u64) {
        self.running = Some((now.saturating_add(ticks), ticks));
    }

    /// Renews it: the reader has shown that it is there. A lease that does not run is not begun.
    pub fn renew(&mut self, now: u64) {
        if let Some((until, ticks)) = &mut self.running {
            *until = now.saturating_add(*ticks);
        }
    }

    /// Ends it, for a caller that decides about the guest from now on. Returns whether one ran.
    pub fn end(&mut self) -> bool {
        self.running.take().is_some()
    }

    /// Returns whether one runs.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns whether it has run out, once: the guest is to go on.
    pub fn has_run_out(&mut self, now: u64) -> bool {
        self.running.take_if(|(until, _)| *until <= now).is_some()
    }

    /// Returns when it runs out.
    pub fn alarm(&self) -> Option<u64> {
        self.running.map(|(until, _)| until)
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
