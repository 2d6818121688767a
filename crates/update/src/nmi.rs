// SPDX-License-Identifier: MIT OR Apache-2.0
//! NMIs that the update sends, and how their handler distinguishes them from others. An NMI has no sender: it may be
//! the update's for as long as one that was sent can be on its way.
//!
//! The watchdog (`bringup::watchdog`) ends the new image's time on the leader where no other CPU can. Its NMI may come
//! right before the CPU is lent: it is claimed then, and an image that hangs would have the CPU for ever. So each NMI
//! that the old image claims on the leader arms the watchdog again.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::platform::Clock;

/// The longest time from sending an NMI until it comes: a CPU of an emulator waits for a core meanwhile.
const LATEST_US: u64 = 1_000_000;

/// The NMIs that may arrive.
#[derive(Debug)]
pub struct ExpectedNmis {
    /// Until when an NMI may be one that this image has sent.
    until: AtomicU64,
    /// The time for which the watchdog was armed last, in microseconds; 0 while it is not.
    armed_us: AtomicU64,
}

/// The actions of an NMI's handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// It may be one that this image has sent: no other handler need search for its cause.
    pub is_expected: bool,
    /// The watchdog is to be armed again for this many microseconds.
    pub arm_again_us: Option<u64>,
}

impl ExpectedNmis {
    /// Creates it without any.
    #[must_use]
    pub const fn new() -> Self {
        Self { until: AtomicU64::new(0), armed_us: AtomicU64::new(0) }
    }

    /// Notes that the caller is about to send one.
    pub fn expect(&self, clock: &impl Clock) {
        self.expect_in(0, clock);
    }

    /// Notes that the caller is about to arm the watchdog, which sends one to the leader after this time.
    pub fn arm(&self, us: u64, clock: &impl Clock) {
        self.expect_in(us, clock);
        self.armed_us.store(us, Ordering::Release);
    }

    /// Notes that the caller is about to disarm the watchdog. One that has gone off may still be on its way.
    pub fn disarm(&self, clock: &impl Clock) {
        self.armed_us.store(0, Ordering::Release);
        self.expect_in(0, clock);
    }

    /// Claims an NMI that has come. For its handler: takes no lock.
    pub fn claim(&self, is_leader: bool, clock: &impl Clock) -> Claim {
        let armed_us = self.armed_us.load(Ordering::Acquire);
        let arm_again_us = (armed_us != 0 && is_leader).then_some(armed_us);
        if let Some(us) = arm_again_us {
            self.expect_in(us, clock);
        }
        Claim { is_expected: clock.now() < self.until.load(Ordering::Acquire), arm_again_us }
    }

    fn expect_in(&self, us: u64, clock: &impl Clock) {
        self.until.store(clock.now() + clock.ticks(us + LATEST_US), Ordering::Release);
    }
}

impl Default for ExpectedNmis {
    fn default() -> Self {
        Self::new()
    }
}
