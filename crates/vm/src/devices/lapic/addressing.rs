// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that decides whether a message is for an APIC, as it is published.

use super::Mode;
use crate::devices::Destination;

/// All ones in x2APIC mode.
const EVERY_X2APIC: u32 = u32::MAX;
/// All ones in xAPIC mode.
const EVERY_XAPIC: u32 = 0xff;

/// Everything about a local APIC that decides whether a message is for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressing {
    pub(super) id: u32,
    pub(super) mode: Mode,
    /// Logical destination register, bits 24–31 (xAPIC mode).
    pub(super) logical: u8,
    /// Destination format register, bits 28–31: 15 flat, 0 cluster (xAPIC mode).
    pub(super) format: u8,
}

pub(super) const fn logical_x2apic(id: u32) -> u32 {
    (id >> 4) << 16 | 1 << (id & 0xf)
}

impl Addressing {
    /// Returns it as one word, without the identifier, to be published.
    pub const fn to_word(self) -> u32 {
        let mode = match self.mode {
            Mode::Disabled => 0,
            Mode::XApic => 1,
            Mode::X2Apic => 2,
        };
        mode | (self.logical as u32) << 8 | (self.format as u32) << 16
    }

    /// From the word that the APIC with this identifier published.
    pub const fn from_word(id: u32, word: u32) -> Self {
        let mode = match word & 3 {
            0 => Mode::Disabled,
            1 => Mode::XApic,
            _ => Mode::X2Apic,
        };
        Self { id, mode, logical: (word >> 8) as u8, format: (word >> 16) as u8 & 0xf }
    }

    /// Returns whether a message from the CPU `sender_id` is for this APIC.
    pub fn matches(self, destination: Destination, sender_id: u32) -> bool {
        if self.mode == Mode::Disabled {
            return false;
        }
        match destination {
            Destination::Itself => sender_id == self.id,
            Destination::All => true,
            Destination::AllButSelf => sender_id != self.id,
            Destination::Physical(id) => id == self.id || self.is_everyone(id),
            Destination::Logical(set) => self.is_everyone(set) || self.is_in_logical_set(set),
        }
    }

    fn is_everyone(self, destination: u32) -> bool {
        destination == EVERY_X2APIC || destination == EVERY_XAPIC && self.mode == Mode::XApic
    }

    fn is_in_logical_set(self, set: u32) -> bool {
        if self.mode == Mode::X2Apic {
            let own = logical_x2apic(self.id);
            return own >> 16 == set >> 16 && own & set & 0xffff != 0;
        }
        let Ok(set) = u8::try_from(set) else { return false };
        let own = self.logical;
        match self.format {
            // Flat: one bit for each of eight CPUs.
            0xf => own & set != 0,
            // Cluster: the cluster's number, or 15 for every cluster, and one bit for each of its four CPUs.
            0x0 => (set >> 4 == 0xf || own >> 4 == set >> 4) && own & set & 0xf != 0,
            _ => false,
        }
    }
}
