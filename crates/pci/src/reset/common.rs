// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts that all resets share: registers, times, and the wait for a function that comes back.

use core::fmt;

use crate::{Bdf, ConfigWrite};

pub(super) const COMMAND: u16 = 0x04;
/// Interrupts by pins are off, and all else.
pub(super) const QUIET: u16 = 1 << 10;
/// PCI Express: Device Control, from the capability's register.
pub(super) const DEVICE_CONTROL: u16 = 0x08;
pub(super) const INITIATE_FLR: u16 = 1 << 15;
/// In Device Status, the upper half of the word of Device Control.
pub(super) const TRANSACTIONS_PENDING: u32 = 1 << 21;

/// The longest wait for transactions of the function that are in flight (PCI Express Base 5.0, section 6.6.2 leaves the
/// time to software; the completion time-out is 50 ms by default: twice that).
pub(super) const DRAIN_US: u32 = 100_000;
/// Time for which a function must not be accessed after its reset (section 6.6.2).
pub(super) const RECOVERY_US: u32 = 100_000;
/// The longest time for which a function may answer that it is not ready (section 6.6.1: a second).
pub(super) const READY_US: u32 = 1_000_000;

/// A reset that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetError {
    /// The function did not come back within a second.
    NotReady,
    /// It is gone: it reads as ones.
    Gone,
    /// Its ranges are not where they were, although it was placed again.
    Displaced,
}

impl fmt::Display for ResetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "it did not come back within a second of its reset",
            Self::Gone => "it does not answer any more",
            Self::Displaced => "its address ranges do not keep their addresses",
        })
    }
}

/// Returns whether a function is ready: one that is not reads as 0001h in its vendor identifier, or as ones.
pub(super) fn is_ready(config: &mut dyn ConfigWrite, place: Bdf) -> bool {
    !matches!(config.read(place, 0) as u16, 0xffff | 0x0001)
}

/// Waits up to `us` microseconds for `is_so`; returns whether it became true.
pub(super) fn wait(config: &mut dyn ConfigWrite, us: u32, mut is_so: impl FnMut(&mut dyn ConfigWrite) -> bool) -> bool {
    for _ in 0..us {
        if is_so(config) {
            return true;
        }
        config.pause();
    }
    false
}
