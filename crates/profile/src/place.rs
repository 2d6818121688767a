// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that a CPU's handler may use, and a guard for memory that was withdrawn while it may still be in use.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// One CPU's place.
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
    /// Permits the handler to use memory at this address, which is not 0.
    pub fn give(&self, address: u64) {
        self.memory.store(address, Ordering::Release);
    }

    /// Withdraws the permission. Once [`Self::is_quiet`], the handler does not use the memory any more.
    pub fn withdraw(&self) {
        self.memory.store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns whether there is memory for the handler.
    pub fn is_given(&self) -> bool {
        self.memory.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the handler does not use withdrawn memory.
    pub fn is_quiet(&self) -> bool {
        !self.is_inside.load(Ordering::Acquire)
    }

    /// Calls `use_it` with the memory, if there is some. For the handler only; no code that interrupts it calls this,
    /// too.
    pub fn with(&self, use_it: impl FnOnce(u64)) {
        self.is_inside.store(true, Ordering::Relaxed);
        // Either this sees the withdrawal, or the CPU that withdrew sees `is_inside`.
        fence(Ordering::SeqCst);
        match self.memory.load(Ordering::Acquire) {
            0 => {}
            address => use_it(address),
        }
        self.is_inside.store(false, Ordering::Release);
    }
}
