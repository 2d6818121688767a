// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of I/O APICs: their entries, and those that wait for the end of the host.

use pci::Bdf;

use crate::hardware::{Memory, Registers};
use crate::intel::registers::{INTERRUPT_REMAPPING, set};
use crate::intel::remapping::NOT_REMAPPED;
use crate::intel::spare::Spare;
use crate::intel::unit::Unit;
use crate::problem::Problem;
use crate::redirection::{Redirection, Signal};

impl<R: Registers> Unit<R> {
    /// Disables interrupt remapping and gives the table back: every interrupt passes.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`], [`Problem::Absurd`]; the table is kept then, as the unit may use it.
    pub fn pass_interrupts(&mut self, memory: &mut impl Memory) -> Result<(), Problem> {
        if self.remapping.is_none() {
            return Ok(());
        }
        set(&mut self.registers, INTERRUPT_REMAPPING, false, "disabling interrupt remapping")?;
        self.remapping.take().into_iter().for_each(|remapping| remapping.free(memory));
        Ok(())
    }

    /// Reserves entries for an I/O APIC unless it has as many.
    ///
    /// # Errors
    /// Those of [`open_interrupts`](Self::open_interrupts).
    pub fn open_inputs(&mut self, memory: &mut impl Memory, source: Bdf, count: u16) -> Result<(), Problem> {
        let remapping = self.remapping.as_ref().ok_or(NOT_REMAPPED)?;
        match remapping.run(source.requester()).len() == usize::from(count) {
            true => self.check(source),
            false => self.open_interrupts(memory, source, count),
        }
    }

    /// Sends input `index` of an I/O APIC to a CPU; returns the redirection table entry that does it.
    ///
    /// # Errors
    /// Those of [`set_interrupt`](Self::set_interrupt).
    pub fn redirect(
        &mut self,
        memory: &mut impl Memory,
        source: Bdf,
        index: u16,
        signal: Signal,
        is_active_low: bool,
    ) -> Result<Redirection, Problem> {
        let entry = self.set_signal(memory, source, index, Some(signal))?;
        Ok(Redirection::remapped(entry, signal, is_active_low))
    }

    /// Returns entry `index` of an I/O APIC, which is never set in any other way.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::Lacks`], [`Problem::NoInterrupt`] if it was not opened.
    pub fn spare(&self, source: Bdf, index: u16) -> Result<Spare, Problem> {
        let entry = self.entry(source, index)?;
        let remapping = self.remapping.as_ref().ok_or(NOT_REMAPPED)?;
        Ok(Spare::new(remapping.place(entry), entry, remapping.is_x2apic()))
    }
}
