// SPDX-License-Identifier: MIT OR Apache-2.0
//! The local vector table: the APIC's own sources of interrupts (Intel SDM vol. 3, section 11.5.1).
//!
//! The timer, the performance counters and errors are wired; the two pins and the thermal sensor are registers that
//! nothing drives.

use super::local_vector::{LocalEntry, LocalVector};
use super::{Acceptance, Lapic};
use crate::devices::DeliveryMode;

impl Lapic {
    pub(super) const fn local_vector(&self, which: LocalVector) -> LocalEntry {
        LocalEntry::from_bits(self.state.local_vectors[which as usize])
    }

    /// Writes an entry; it stays masked while software has disabled the APIC.
    pub(super) fn set_local_vector(&mut self, which: LocalVector, value: u32) {
        let forced = if self.is_software_enabled() { 0 } else { LocalEntry::MASKED };
        self.state.local_vectors[which as usize] = value & which.writable_bits() | forced;
    }

    /// Masks every entry, as disabling the APIC does.
    pub(super) fn mask_local_vectors(&mut self) {
        self.state.local_vectors.iter_mut().for_each(|entry| *entry |= LocalEntry::MASKED);
    }

    /// A performance counter has overflowed. `then_masks` is the CPU's habit of masking the entry as it delivers
    /// (Intel's since the Pentium 4 do, AMD's do not).
    pub fn raise_performance_interrupt(&mut self, then_masks: bool) -> Acceptance {
        let entry = self.local_vector(LocalVector::Performance);
        if !self.is_enabled() || entry.masked() {
            return Acceptance::Ignored;
        }
        if then_masks {
            self.state.local_vectors[LocalVector::Performance as usize] |= LocalEntry::MASKED;
        }
        match DeliveryMode::from_bits(entry.delivery_mode()) {
            Some(DeliveryMode::Fixed) => self.accept_vector(entry.vector(), false),
            Some(DeliveryMode::Nmi) => Acceptance::Nmi,
            _ => Acceptance::Ignored,
        }
    }
}
