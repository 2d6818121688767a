// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls for a CPU's loop, made by that CPU and its interrupt handlers alone.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// There is work, for the loop or for the layers above.
const WORK: u8 = 1;
/// A vCPU may have an interrupt: one is to be chosen again.
const CHOICE: u8 = 2;
/// The same for one that the running vCPU has something for: that one keeps the CPU for its slice.
const BEHIND: u8 = 4;

/// The calls that the loop has not answered yet.
pub struct Calls {
    calls: AtomicU8,
    /// A vCPU waits that the running one has something for.
    waits_behind: AtomicBool,
}

impl Calls {
    /// None.
    pub const fn new() -> Self {
        Self { calls: AtomicU8::new(0), waits_behind: AtomicBool::new(false) }
    }

    /// Drops all of them.
    pub fn clear(&self) {
        self.calls.store(0, Ordering::Relaxed);
    }

    /// The loop is to do all its work.
    pub fn for_work(&self) {
        self.calls.fetch_or(WORK, Ordering::Relaxed);
    }

    /// The loop is to choose a vCPU again.
    pub fn for_choice(&self) {
        self.calls.fetch_or(CHOICE, Ordering::Relaxed);
    }

    /// The same, for a vCPU that the running one has something for.
    pub fn for_choice_behind(&self) {
        self.calls.fetch_or(BEHIND, Ordering::Relaxed);
    }

    /// A vCPU that the running one has something for waits, from now on, for the end of its slice.
    pub fn note_waits_behind(&self) {
        self.waits_behind.store(true, Ordering::Relaxed);
    }

    /// Has the running vCPU make way for the one that it has something for, if one waits; returns whether it does.
    pub fn for_way(&self) -> bool {
        let is_waiting = self.waits_behind.load(Ordering::Relaxed);
        if is_waiting {
            self.for_choice();
        }
        is_waiting
    }

    /// Returns whether a vCPU waits that the running one has something for. It does not any more.
    #[inline]
    pub fn take_waits_behind(&self) -> bool {
        let is_waiting = self.waits_behind.load(Ordering::Relaxed);
        if is_waiting {
            self.waits_behind.store(false, Ordering::Relaxed);
        }
        is_waiting
    }

    /// Returns whether there are any: no guest is entered then.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.calls.load(Ordering::Relaxed) != 0
    }

    /// Returns whether there is one for work, and answers it.
    #[inline]
    pub fn take_work(&self) -> bool {
        self.take(WORK) != 0
    }

    /// Answers those for another choice. Returns whether the running vCPU keeps the CPU for its slice: all of them came
    /// from it.
    #[inline]
    pub fn take_choice(&self) -> bool {
        self.take(CHOICE | BEHIND) == BEHIND
    }

    /// Answers these calls; returns those that there were.
    fn take(&self, calls: u8) -> u8 {
        if self.calls.load(Ordering::Relaxed) & calls == 0 {
            return 0;
        }
        self.calls.fetch_and(!calls, Ordering::Relaxed) & calls
    }
}
