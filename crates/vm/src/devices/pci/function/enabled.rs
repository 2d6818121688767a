// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of a function that the guest has enabled.

use super::Function;
use crate::devices::device::At;
use crate::devices::pci::message::Messages;

impl Function {
    /// Returns which of MSI-X and MSI the guest has enabled.
    pub fn messages(&self) -> Messages {
        match (&self.msix, self.msi) {
            (Some(msix), _) if msix.is_enabled(&self.registers) => Messages::MsiX,
            (_, Some(msi)) if msi.is_enabled(&self.registers) => {
                Messages::Msi { vectors: msi.allowed(&self.registers) }
            }
            _ => Messages::Off,
        }
    }

    /// Returns whether the guest has enabled MSI-X and does not mask this vector.
    pub fn is_vector_unmasked(&self, vector: u16) -> bool {
        let msix = self.msix.as_ref().filter(|msix| msix.is_enabled(&self.registers));
        msix.is_some_and(|msix| msix.is_unmasked(vector))
    }

    /// The vector with the entry in the MSI-X table that is accessed.
    pub fn vector_at(&self, at: At) -> Option<u16> {
        self.msix.as_ref()?.vector_at(at)
    }
}
