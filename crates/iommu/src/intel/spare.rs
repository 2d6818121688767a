// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of the interrupt remapping table for the end of the host.

use units::PhysAddr;

use crate::intel::interrupts::low_of;
use crate::redirection::{Redirection, Signal};

/// An entry of an interrupt remapping table that the host keeps absent until it ends. The end of the host sends a
/// UART's input or the watchdog's to the CPU that ends it, and may neither wait for a unit nor take its lock: no unit
/// has cached an entry that was never present.
///
/// Units in caching mode (CAP.CM) may have cached its absence. There the input sends no interrupts, and the UART is not
/// served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare(u64);

/// Bits 4 to 51 of a spare entry: where it is. Above is its index, which has 12 bits.
const SPARE_ADDRESS: u64 = 0x000f_ffff_ffff_fff0;
const SPARE_INDEX_SHIFT: u32 = 52;
const SPARE_X2APIC: u64 = 1 << 0;

/// The stores that send an input's interrupts by a spare entry: first the word, then the redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareWrite {
    /// Address to which the word is stored and written back.
    pub at: PhysAddr,
    /// The word.
    pub word: u64,
    /// The input's entry.
    pub redirection: Redirection,
}

impl Spare {
    pub(super) const fn new(at: PhysAddr, index: u16, is_x2apic: bool) -> Self {
        Self((index as u64) << SPARE_INDEX_SHIFT | at.0 & SPARE_ADDRESS | is_x2apic as u64)
    }

    /// Returns it as one word, which is not 0: for an atomic variable.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the value for the result of [`bits`](Self::bits); `None` for 0.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Returns what is stored so that the input sends this.
    pub const fn send(self, signal: Signal, is_active_low: bool) -> SpareWrite {
        let index = (self.0 >> SPARE_INDEX_SHIFT) as u16;
        SpareWrite {
            at: PhysAddr(self.0 & SPARE_ADDRESS),
            word: low_of(signal, self.0 & SPARE_X2APIC != 0),
            redirection: Redirection::remapped(index, signal, is_active_low),
        }
    }
}

#[cfg(test)]
#[path = "spare_tests.rs"]
mod tests;
