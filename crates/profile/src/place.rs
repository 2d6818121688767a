// SPDX-License-Identifier: MIT OR Apache-2.0
//! Place of the memory for a CPU's handler, and a guard for memory that was taken from it while it may still be in use.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// One CPU's.
#[derive(Debug)]
pub struct Place {
    memory: AtomicU64,
    is_inside: AtomicBool,
}

impl Default for Place {
    fn default() -> Self {
        Self { memory: AtomicU64::new(0), is_inside: AtomicBool::new(false) }
    }
}

impl Place {
    /// The handler may use memory at this address, which is not 0, from now on.
    pub fn give(&self, address: u64) {
        self.memory.store(address, Ordering::Release);
    }

    /// It may not any more; once [`Self::is_quiet`] it does not.
    pub fn take_back(&self) {
        self.memory.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns whether there is memory for the handler.
    pub fn is_given(&self) -> bool {
        self.memory.load(Ordering::Relaxed) != 0
    }

    /// The handler does not use what has been taken back.
    pub fn is_quiet(&self) -> bool {
        !self.is_inside.load(Ordering::Acquire)
    }

    /// For the handler, which nothing interrupts that comes here, too: does something with the memory, if there is
    /// some.
    pub fn with(&self, use_it: impl FnOnce(u64)) {
        self.is_inside.store(true, Ordering::Relaxed);
        // Either this sees what was taken back, or who took it sees this.
        fence(Ordering::SeqCst);
        match self.memory.load(Ordering::Acquire) {
            0 => {}
            address => use_it(address),
        }
        self.is_inside.store(false, Ordering::Release);
    }
}
