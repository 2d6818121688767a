// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O APICs of the machine, and the units that their interrupts pass.

use alloc::vec::Vec;

use iommu::description::Description;
use pci::Bdf;

use crate::arch::ioapic::IoApic;
use crate::kernel::platform::firmware;

/// The unit that the interrupts of each I/O APIC pass, with their requester; `None` where firmware names none.
pub(super) fn chips(description: &Description) -> Vec<Option<(usize, Bdf)>> {
    let tables = firmware();
    let chip_of = |id| {
        let chip = description.io_apic(id)?;
        let segment = description.units.get(usize::from(chip.unit))?.segment;
        Some((usize::from(chip.unit), Bdf::of_requester(segment, chip.requester)))
    };
    tables.io_apics.iter().map(|io_apic| chip_of(io_apic.id)).collect()
}

/// Masks every input: none is sent astray while a unit changes.
pub(super) fn mask_all() {
    let count = firmware().io_apics.len();
    (0..count).for_each(|number| IoApic::mapped(number).mask_all());
}
