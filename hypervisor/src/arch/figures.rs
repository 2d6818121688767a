// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics that a CPU publishes for the control channel.

use core::sync::atomic::{AtomicBool, Ordering};

use spin::Mutex;

/// A vCPU's, or a CPU's.
pub struct Figures<T> {
    are_wanted: AtomicBool,
    latest: Mutex<Option<T>>,
}

impl<T> Default for Figures<T> {
    fn default() -> Self {
        Self { are_wanted: AtomicBool::new(false), latest: Mutex::new(None) }
    }
}

impl<T: Clone> Figures<T> {
    /// Publishes them, if they are wanted. For the CPU that holds the vCPU, or the CPU itself.
    pub fn publish(&self, figures: impl FnOnce() -> T) {
        if self.are_wanted.load(Ordering::Relaxed) && self.are_wanted.swap(false, Ordering::AcqRel) {
            *self.latest.lock() = Some(figures());
        }
    }

    /// Returns the latest, and requests new ones: the caller wakes the CPU that takes them.
    pub fn request_latest(&self) -> Option<T> {
        self.are_wanted.store(true, Ordering::Release);
        self.latest.lock().clone()
    }
}
