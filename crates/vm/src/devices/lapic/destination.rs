// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matching of a message's destination with an APIC (Intel SDM vol. 3, sections 11.6.2 and 11.12.10).
//!
//! A sender with an eight-bit physical destination (the I/O APIC, xAPIC mode, MSI) turns 0xff into all ones, so that it
//! means "every one" whatever mode the receiver is in.
//!
//! A sender on another CPU cannot read a local APIC: it decides by the [`Addressing`] that each one publishes.

use super::addressing::{Addressing, logical_x2apic};
use super::{Lapic, Mode};
use crate::devices::Destination;

impl Lapic {
    /// Returns the addressing that a sender needs of this APIC.
    pub fn addressing(&self) -> Addressing {
        Addressing {
            id: self.id(),
            mode: self.mode(),
            logical: (self.state.logical_destination >> 24) as u8,
            format: (self.state.destination_format >> 28) as u8,
        }
    }

    /// Returns whether a message from the CPU `sender_id` is for this one. Devices send to no shorthand; any identifier
    /// will do for them.
    pub fn matches(&self, destination: Destination, sender_id: u32) -> bool {
        self.addressing().matches(destination, sender_id)
    }

    /// The logical destination register: written by software in xAPIC mode, made of the identifier in x2APIC mode.
    pub(super) fn logical_destination(&self) -> u32 {
        match self.mode() {
            Mode::X2Apic => logical_x2apic(self.id()),
            _ => self.state.logical_destination,
        }
    }
}
