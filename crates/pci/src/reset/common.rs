// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all resets share: registers, times, and the wait for a function that comes back.

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

/// Transactions of the function may be on their way for so long (PCI Express Base 5.0, section 6.6.2 leaves the time to
/// software, whose completion time-out is 50 ms by default: twice that).
pub(super) const DRAIN_US: u32 = 100_000;
/// A function must not be accessed for so long after its reset (section 6.6.2).
pub(super) const SETTLE_US: u32 = 100_000;
/// A function may answer that it is not ready for so long (section 6.6.1: a second).
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

/// A function that is not ready reads as 0001h in its vendor identifier, or as ones.
pub(super) fn is_ready(config: &mut dyn ConfigWrite, place: Bdf) -> bool {
    !matches!(config.read(place, 0) as u16, 0xffff | 0x0001)
}

/// Waits for so many microseconds at most; returns whether it became so.
pub(super) fn wait(config: &mut dyn ConfigWrite, us: u32, mut is_so: impl FnMut(&mut dyn ConfigWrite) -> bool) -> bool {
    for _ in 0..us {
        if is_so(config) {
            return true;
        }
        config.pause();
    }
    false
}
