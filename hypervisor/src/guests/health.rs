// SPDX-License-Identifier: MIT OR Apache-2.0
//! Health of a guest's kernel, as the kernel reports it and as it appears from outside.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The health of one guest's kernel.
#[derive(Debug, Default)]
pub struct Health {
    /// It has reported that it panicked.
    pub(super) has_reported: AtomicBool,
    /// vCPUs that were found to spin.
    pub(super) spinning: AtomicU32,
    /// vCPUs that get only a sliver of time.
    pub(super) throttled: AtomicU32,
    /// Since when one does, in nanoseconds of the host's time.
    pub(super) throttled_since_ns: AtomicU64,
}

impl Health {
    /// A guest that starts is well.
    pub fn reset(&self) {
        self.has_reported.store(false, Ordering::Release);
        self.spinning.store(0, Ordering::Release);
        self.throttled.store(0, Ordering::Release);
    }

    /// Returns whether the guest has reported that it panicked.
    pub fn has_reported(&self) -> bool {
        self.has_reported.load(Ordering::Acquire)
    }

    /// Since when a vCPU gets only a sliver of time.
    pub fn throttled_since_ns(&self) -> Option<u64> {
        let is_throttled = self.throttled.load(Ordering::Acquire) > 0;
        is_throttled.then(|| self.throttled_since_ns.load(Ordering::Acquire))
    }
}
