// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest that a CPU ran last: a barrier is needed when another one follows.

use core::sync::atomic::{AtomicU32, Ordering};

/// One CPU's. Only that CPU uses it.
#[derive(Debug, Default)]
pub struct LastGuest(AtomicU32);

impl LastGuest {
    /// No guest yet, or an unknown one: the first one gets a barrier.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Notes that the CPU runs this guest next. Returns whether another one ran before. vCPUs of one guest count as
    /// one.
    pub fn follow(&self, guest: u32) -> bool {
        let next = guest.wrapping_add(1);
        let last = self.0.load(Ordering::Relaxed);
        self.0.store(next, Ordering::Relaxed);
        last != next
    }
}
