// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls for a CPU's loop, made by that CPU and its interrupt handlers alone.

use core::sync::atomic::{AtomicU8, Ordering};

/// There is work, for the loop or for the layers above.
const WORK: u8 = 1;
/// A vCPU may have an interrupt: one is to be chosen again.
const CHOICE: u8 = 2;

/// The calls that the loop has not answered yet.
pub struct Calls(AtomicU8);

impl Calls {
    /// None.
    pub const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// Drops all of them.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The loop is to do all its work.
    pub fn for_work(&self) {
        self.0.fetch_or(WORK, Ordering::Relaxed);
    }

    /// The loop is to choose a vCPU again.
    pub fn for_choice(&self) {
        self.0.fetch_or(CHOICE, Ordering::Relaxed);
    }

    /// Returns whether there are any: no guest is entered then.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns whether there is one for work, and answers it.
    #[inline]
    pub fn take_work(&self) -> bool {
        self.take(WORK)
    }

    /// Answers the one for another choice, if there is one.
    #[inline]
    pub fn take_choice(&self) {
        self.take(CHOICE);
    }

    fn take(&self, call: u8) -> bool {
        let is_there = self.0.load(Ordering::Relaxed) & call != 0;
        if is_there {
            self.0.fetch_and(!call, Ordering::Relaxed);
        }
        is_there
    }
}
