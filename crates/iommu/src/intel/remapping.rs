// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of a unit's functions: opened, set, moved, closed.

use pci::Bdf;

use crate::hardware::{Memory, Registers};
use crate::intel::interrupts::{self, Remapping};
use crate::intel::queue::Command;
use crate::intel::registers::{
    COMPATIBILITY_INTERRUPTS, EXTENDED_INTERRUPTS, INTERRUPT_REMAPPING, INTERRUPT_TABLE, SET_INTERRUPT_TABLE, once, set,
};
use crate::intel::unit::Unit;
use crate::interrupt::{Interrupt, Message};
use crate::problem::Problem;
use crate::redirection::Signal;

pub(super) const NOT_REMAPPED: Problem = Problem::Lacks { feature: "interrupt remapping that is enabled" };

impl<R: Registers> Unit<R> {
    /// Enables interrupt remapping, with CPUs named by x2APIC identifiers or by those of eight bits. From here on no
    /// interrupt arrives that was not opened, nor any in compatibility format: I/O APICs are masked by now.
    ///
    /// # Errors
    /// [`Problem::Lacks`], [`Problem::OutOfMemory`], [`Problem::NoAnswer`], [`Problem::Refused`].
    pub fn remap_interrupts(&mut self, memory: &mut impl Memory, is_x2apic: bool) -> Result<(), Problem> {
        if !self.capabilities.can_remap_interrupts() {
            return Err(Problem::Lacks { feature: "interrupt remapping (ECAP.IR)" });
        }
        if is_x2apic && !self.capabilities.has_extended_interrupts() {
            return Err(Problem::Lacks { feature: "interrupts to x2APIC identifiers (ECAP.EIM)" });
        }
        if self.remapping.is_some() {
            return Ok(());
        }
        let remapping = Remapping::new(memory, is_x2apic, self.stores()).ok_or(Problem::OutOfMemory)?;
        let mode = if is_x2apic { EXTENDED_INTERRUPTS } else { 0 };
        self.flush_stores()?;
        self.registers.write64(INTERRUPT_TABLE, remapping.register() | mode);
        once(&mut self.registers, SET_INTERRUPT_TABLE, "setting the interrupt remapping table")?;
        self.command(memory, Command::Interrupts)?;
        set(&mut self.registers, COMPATIBILITY_INTERRUPTS, false, "blocking interrupts in compatibility format")?;
        set(&mut self.registers, INTERRUPT_REMAPPING, true, "enabling interrupt remapping")?;
        self.remapping = Some(remapping);
        Ok(())
    }

    /// Returns whether functions send only the interrupts that were opened for them.
    pub fn remaps_interrupts(&self) -> bool {
        self.remapping.is_some()
    }

    /// Reserves `count` interrupts for a function or an I/O APIC, none of which can be sent yet. What it had is closed.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::Lacks`] before [`remap_interrupts`](Self::remap_interrupts),
    /// [`Problem::NoInterrupt`] if no entries are left, [`Problem::NoAnswer`], [`Problem::Refused`].
    pub fn open_interrupts(&mut self, memory: &mut impl Memory, source: Bdf, count: u16) -> Result<(), Problem> {
        self.close_interrupts(memory, source)?;
        let remapping = self.remapping.as_mut().ok_or(NOT_REMAPPED)?;
        remapping.open(memory, source.requester(), count).ok_or(Problem::NoInterrupt { source })
    }

    /// Takes the interrupts of a function back: it can send none.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::Lacks`], [`Problem::NoAnswer`], [`Problem::Refused`].
    pub fn close_interrupts(&mut self, memory: &mut impl Memory, source: Bdf) -> Result<(), Problem> {
        self.check(source)?;
        let remapping = self.remapping.as_ref().ok_or(NOT_REMAPPED)?;
        let run = remapping.run(source.requester());
        if run.is_empty() {
            return Ok(());
        }
        run.for_each(|index| remapping.set(memory, index, None));
        self.command(memory, Command::Interrupts)?;
        if let Some(remapping) = self.remapping.as_mut() {
            remapping.close(memory, source.requester());
        }
        Ok(())
    }

    /// Sets the destination of a function's interrupt `index`, or that it cannot be sent. Changed in one store:
    /// each interrupt goes to the former place or to the new one.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::Lacks`], [`Problem::NoInterrupt`] if it was not opened,
    /// [`Problem::FarDestination`], [`Problem::NoAnswer`], [`Problem::Refused`].
    pub fn set_interrupt(
        &mut self,
        memory: &mut impl Memory,
        source: Bdf,
        index: u16,
        interrupt: Option<Interrupt>,
    ) -> Result<(), Problem> {
        self.set_signal(memory, source, index, interrupt.map(Signal::Interrupt)).map(drop)
    }

    /// Sets or clears entry `index` of a function or I/O APIC; returns its number in the table.
    pub(super) fn set_signal(
        &mut self,
        memory: &mut impl Memory,
        source: Bdf,
        index: u16,
        signal: Option<Signal>,
    ) -> Result<u16, Problem> {
        let entry = self.entry(source, index)?;
        let remapping = self.remapping.as_ref().ok_or(NOT_REMAPPED)?;
        if let Some(Signal::Interrupt(Interrupt { destination, .. }) | Signal::Nmi { destination }) = signal
            && destination > 0xfe
            && !remapping.is_x2apic()
        {
            return Err(Problem::FarDestination { destination });
        }
        remapping.set(memory, entry, signal);
        self.command(memory, Command::Interrupt { index: entry })?;
        Ok(entry)
    }

    /// Returns the destination of a function's interrupt `index`; `None` if it cannot be sent.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::Lacks`], [`Problem::NoInterrupt`] if it was not opened.
    pub fn interrupt(&self, memory: &impl Memory, source: Bdf, index: u16) -> Result<Option<Interrupt>, Problem> {
        let entry = self.entry(source, index)?;
        Ok(self.remapping.as_ref().and_then(|remapping| remapping.get(memory, entry)))
    }

    /// Returns the message that a function writes to send its interrupt `index`.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::Lacks`], [`Problem::NoInterrupt`] if it was not opened.
    pub fn message(&self, source: Bdf, index: u16) -> Result<Message, Problem> {
        let entry = self.entry(source, index)?;
        Ok(interrupts::message(entry - index, index))
    }

    pub(super) fn entry(&self, source: Bdf, index: u16) -> Result<u16, Problem> {
        self.check(source)?;
        let remapping = self.remapping.as_ref().ok_or(NOT_REMAPPED)?;
        let mut run = remapping.run(source.requester());
        run.nth(index.into()).ok_or(Problem::NoInterrupt { source })
    }
}
