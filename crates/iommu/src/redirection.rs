// SPDX-License-Identifier: MIT OR Apache-2.0
//! Redirection tables of I/O APICs, and what their inputs send.

use crate::Interrupt;

/// The interrupt that an input of an I/O APIC sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// An interrupt.
    Interrupt(Interrupt),
    /// An NMI, edge-triggered.
    Nmi {
        /// The CPU's APIC identifier.
        destination: u32,
    },
}

/// An entry of an I/O APIC's redirection table (82093AA, section 3.2.4), in which the input is not masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirection(pub u64);

const VECTOR: u64 = 0xff;
const NMI: u64 = 0b100 << 8;
const DELIVERY_MODE: u64 = 0b111 << 8;
const ACTIVE_LOW: u64 = 1 << 13;
const LEVEL: u64 = 1 << 15;
const MASKED: u64 = 1 << 16;
/// The entry names one of an interrupt remapping table (VT-d, section 5.1.5.1).
const REMAPPABLE: u64 = 1 << 48;
const DESTINATION_SHIFT: u32 = 56;

impl Redirection {
    /// Returns the entry that names the CPU itself, for I/O APICs with interrupts that are not remapped. Of the
    /// identifier the low eight bits are used.
    pub const fn direct(signal: Signal, is_active_low: bool) -> Self {
        let (destination, what) = match signal {
            Signal::Interrupt(interrupt) => {
                (interrupt.destination, interrupt.vector as u64 | if interrupt.is_level { LEVEL } else { 0 })
            }
            Signal::Nmi { destination } => (destination, NMI),
        };
        let polarity = if is_active_low { ACTIVE_LOW } else { 0 };
        Self((destination as u64) << DESTINATION_SHIFT | what | polarity)
    }

    /// Returns the entry that names entry `index` of VT-d's interrupt remapping table. Vector and trigger mode repeat
    /// that entry's: an end of interrupt is matched by the former. An NMI has no vector.
    pub(crate) const fn remapped(index: u16, signal: Signal, is_active_low: bool) -> Self {
        let what = match signal {
            Signal::Interrupt(interrupt) => interrupt.vector as u64 | if interrupt.is_level { LEVEL } else { 0 },
            Signal::Nmi { .. } => 0,
        };
        let polarity = if is_active_low { ACTIVE_LOW } else { 0 };
        let (low, high) = ((index & 0x7fff) as u64, (index >> 15) as u64);
        Self(low << 49 | REMAPPABLE | high << 11 | polarity | what)
    }

    /// Returns the same entry, in which the input is masked.
    pub const fn masked(self) -> Self {
        Self(self.0 | MASKED)
    }

    /// Returns whether an input with this entry sends an NMI, as either constructor makes it.
    pub const fn is_nmi(self) -> bool {
        match self.0 & REMAPPABLE {
            0 => self.0 & DELIVERY_MODE == NMI,
            _ => self.0 & VECTOR == 0,
        }
    }
}

#[cfg(test)]
#[path = "redirection_tests.rs"]
mod tests;
