// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of I/O APICs, and whether units remap interrupts. VT-d blocks an input with an entry that names a CPU itself,
//! so every entry is made here, after the units were taken over or adopted.

use alloc::format;
use alloc::string::ToString;

use iommu::description::Kind;
use iommu::{Problem, Redirection, Signal, Spare};
use pci::Bdf;

use super::chips::mask_all;
use super::{IOMMUS, Iommus};
use crate::arch::apic;
use crate::arch::ioapic::IoApic;

/// Makes the entry by which an input of I/O APIC `chip` sends something from here on.
pub fn redirect(chip: usize, input: u32, signal: Signal, is_active_low: bool) -> Redirection {
    let mut iommus = IOMMUS.lock();
    let made = iommus.as_mut().and_then(|iommus| {
        let (number, apic) = iommus.chip(chip)?;
        let unit = iommus.units.get_mut(number)?.unit.as_mut().ok()?;
        let made = unit.redirect(&mut iommus.store, apic, input as u16, signal, is_active_low);
        made.inspect_err(|problem| log::error!("IOMMU {number}: I/O APIC {chip} input {input} is blocked: {problem}"))
            .ok()
    });
    made.unwrap_or(Redirection::direct(signal, is_active_low))
}

/// An I/O APIC's entry for the end of the host; `None` where its interrupts are not remapped.
pub fn spare(chip: usize, number: u16) -> Option<Spare> {
    let mut iommus = IOMMUS.lock();
    let iommus = iommus.as_mut()?;
    let (unit, apic) = iommus.chip(chip)?;
    iommus.units.get_mut(unit)?.unit.as_mut().ok()?.spare(&mut iommus.store, apic, number).ok().flatten()
}

/// Has all units pass interrupts unchecked; returns whether any did not. Inputs are masked then.
pub(in crate::kernel) fn pass() -> bool {
    let mut iommus = IOMMUS.lock();
    let Some(iommus) = iommus.as_mut().filter(|iommus| iommus.remaps_inputs()) else { return false };
    mask_all();
    for (number, driven) in iommus.units.iter_mut().enumerate() {
        let Ok(unit) = &mut driven.unit else { continue };
        match unit.pass_interrupts(&mut iommus.store) {
            Ok(()) => log::warn!("IOMMU {number}: interrupts pass unchecked, for an image that cannot remap them"),
            Err(problem) => log::error!("IOMMU {number}: interrupts of I/O APICs are blocked: {problem}"),
        }
    }
    iommus.has_passed = true;
    true
}

/// Has units remap interrupts again after [`pass`]; returns whether it was so. Inputs are masked then.
pub(in crate::kernel) fn remap_again() -> bool {
    let mut iommus = IOMMUS.lock();
    let Some(iommus) = iommus.as_mut().filter(|iommus| iommus.has_passed) else { return false };
    mask_all();
    iommus.has_passed = false;
    iommus.remap_interrupts();
    true
}

impl Iommus {
    /// Has every unit remap interrupts that can and does not yet. Where one cannot, functions behind it can send any
    /// interrupt, so that none of them can be a guest's.
    pub(super) fn remap_interrupts(&mut self) {
        let unnamed = self.chips.iter().position(Option::is_none);
        for number in 0..self.units.len() {
            if self.units[number].unit.as_ref().is_ok_and(|unit| !unit.remaps_interrupts()) {
                let remapped = match unnamed {
                    _ if !self.description.remaps_interrupts => Err("firmware does not allow it (DMAR)".to_string()),
                    Some(chip) => Err(format!("firmware names no requester of I/O APIC {chip}")),
                    None => self.remap(number).map_err(|problem| problem.to_string()),
                };
                match remapped {
                    Ok(()) => log::info!("IOMMU {number}: interrupts are remapped"),
                    Err(why) => log::warn!("IOMMU {number}: interrupts pass unchecked: {why}"),
                }
            }
        }
    }

    fn remap(&mut self, number: usize) -> Result<(), Problem> {
        let is_x2apic = apic::mode() == apic::Mode::X2apic;
        mask_all();
        let Ok(unit) = &mut self.units[number].unit else { return Ok(()) };
        match unit.remap_interrupts(&mut self.store, is_x2apic) {
            Err(Problem::OutOfMemory) => {}
            remapped => return remapped,
        }
        self.add_memory().map_err(|_| Problem::OutOfMemory)?;
        let Ok(unit) = &mut self.units[number].unit else { return Ok(()) };
        unit.remap_interrupts(&mut self.store, is_x2apic)
    }

    /// Returns whether units block inputs of I/O APICs with entries that name a CPU themselves.
    fn remaps_inputs(&self) -> bool {
        let mut units = self.units.iter().filter_map(|driven| driven.unit.as_ref().ok());
        self.description.kind == Some(Kind::Intel) && units.any(|unit| unit.remaps_interrupts())
    }

    /// The unit of an I/O APIC; its requester, and how many inputs it has.
    fn chip(&self, chip: usize) -> Option<(usize, (Bdf, u16))> {
        let (unit, requester) = (*self.chips.get(chip)?)?;
        Some((unit, (requester, IoApic::mapped(chip).inputs() as u16)))
    }
}
