// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of a unit's functions.

use pci::Bdf;

use super::vendor::Unit;
use crate::store::Words;
use crate::{Interrupt, Message, Problem, Registers, Store};

impl<R: Registers> Unit<R> {
    /// Returns whether functions send only the interrupts that were opened for them. If not, a function can send every
    /// vector to every CPU.
    pub fn remaps_interrupts(&self) -> bool {
        match self {
            Self::Amd(..) => true,
            Self::Intel(unit) => unit.remaps_interrupts(),
        }
    }

    /// Gives a function at least `count` interrupts, all of them closed. Those that it had are closed.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::Lacks`] if the unit does not remap interrupts; [`Problem::NoInterrupt`] for
    /// none or more than are left; [`Problem::OutOfMemory`]; [`Problem::NoAnswer`]; [`Problem::Refused`].
    pub fn open_interrupts<W: Words>(&mut self, memory: &mut Store<W>, source: Bdf, count: u16) -> Result<(), Problem> {
        match self {
            Self::Amd(registers, unit) => unit.open_interrupts(registers, memory, source, count),
            Self::Intel(unit) => unit.open_interrupts(memory, source, count),
        }
    }

    /// Sends a function's interrupt `index` to a CPU, or nowhere. One that is moved arrives at either CPU.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::Lacks`]; [`Problem::NoInterrupt`] if it was not opened;
    /// [`Problem::FarDestination`]; [`Problem::NoAnswer`]; [`Problem::Refused`].
    pub fn set_interrupt<W: Words>(
        &mut self,
        memory: &mut Store<W>,
        source: Bdf,
        index: u16,
        interrupt: Option<Interrupt>,
    ) -> Result<(), Problem> {
        match self {
            Self::Amd(registers, unit) => unit.set_interrupt(registers, memory, source, index, interrupt),
            Self::Intel(unit) => unit.set_interrupt(memory, source, index, interrupt),
        }
    }

    /// Returns the destination of a function's interrupt `index` in the unit's tables; `None` if it is closed.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::Lacks`]; [`Problem::NoInterrupt`] if it was not opened.
    pub fn interrupt<W: Words>(
        &self,
        memory: &Store<W>,
        source: Bdf,
        index: u16,
    ) -> Result<Option<Interrupt>, Problem> {
        match self {
            Self::Amd(_, unit) => unit.interrupt(memory, source, index),
            Self::Intel(unit) => unit.interrupt(memory, source, index),
        }
    }

    /// Returns the message that a function writes to send its interrupt `index`.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::Lacks`]; [`Problem::NoInterrupt`] if it was not opened.
    pub fn message<W: Words>(&self, memory: &Store<W>, source: Bdf, index: u16) -> Result<Message, Problem> {
        match self {
            Self::Amd(_, unit) => unit.message(memory, source, index),
            Self::Intel(unit) => unit.message(source, index),
        }
    }
}
