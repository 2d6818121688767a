// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of an I/O APIC that is handed over, and its valid values.

use super::{IOAPIC_PINS, RedirectionEntry, StateError};

/// Everything about the I/O APIC that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoapicState {
    /// The index register.
    pub index: u8,
    /// The identifier, 0–15.
    pub id: u8,
    /// The redirection entries: [`RedirectionEntry`]'s bits.
    pub entries: [u64; IOAPIC_PINS],
    /// The lines that are asserted, one bit for each pin.
    pub lines: u32,
}

impl IoapicState {
    /// Checks that an I/O APIC can be in this state.
    pub(super) fn validate(&self) -> Result<(), StateError> {
        if self.id > 0xf {
            return Err(StateError { field: "ioapic.id", reason: "more than four bits" });
        }
        if self.lines >> IOAPIC_PINS != 0 {
            return Err(StateError { field: "ioapic.lines", reason: "a line of a pin that does not exist" });
        }
        (0..IOAPIC_PINS).try_for_each(|pin| self.validate_entry(pin))
    }

    fn validate_entry(&self, pin: usize) -> Result<(), StateError> {
        let refuse = |reason| Err(StateError { field: "ioapic.entries", reason });
        let entry = RedirectionEntry::from_bits(self.entries[pin]);
        if entry.into_bits() & !RedirectionEntry::DEFINED != 0 {
            return refuse("a bit is set that always reads as zero");
        }
        if entry.remote_irr() && !entry.waits_for_end() {
            return refuse("an edge-triggered pin waits for the end of an interrupt");
        }
        if entry.is_ready() && self.lines & 1 << pin != 0 {
            return refuse("a level-triggered interrupt has not been delivered");
        }
        Ok(())
    }
}
