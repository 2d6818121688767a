// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of I/O APICs with interrupts that pass a unit. AMD-Vi passes them as they are (`passes_interrupts`); VT-d
//! remaps them, or blocks those that name a CPU themselves.

use pci::Bdf;

use super::vendor::Unit;
use crate::store::Words;
use crate::{Problem, Redirection, Registers, Signal, Spare, Store};

/// Spare entries of an I/O APIC.
pub const SPARES: u16 = 3;

impl<R: Registers> Unit<R> {
    /// Has the unit check interrupts, where that is not so from the start. Inputs of I/O APICs are masked by now. From
    /// here on only [`redirect`](Self::redirect) makes entries that arrive.
    ///
    /// # Errors
    /// [`Problem::Lacks`]: interrupts pass unchecked, as before. [`Problem::OutOfMemory`]; [`Problem::NoAnswer`];
    /// [`Problem::Refused`].
    pub fn remap_interrupts<W: Words>(&mut self, memory: &mut Store<W>, is_x2apic: bool) -> Result<(), Problem> {
        match self {
            Self::Amd(..) => Ok(()),
            Self::Intel(unit) => unit.remap_interrupts(memory, is_x2apic),
        }
    }

    /// Lets interrupts pass unchecked again, for an image that knows of no remapping. Inputs of I/O APICs are masked by
    /// now, and no function is a guest's. Does nothing to AMD-Vi, which passes those of I/O APICs.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`], [`Problem::Absurd`]: interrupts may still be remapped.
    pub fn pass_interrupts<W: Words>(&mut self, memory: &mut Store<W>) -> Result<(), Problem> {
        match self {
            Self::Amd(..) => Ok(()),
            Self::Intel(unit) => unit.pass_interrupts(memory),
        }
    }

    /// Sends input `index` of the I/O APIC `source`, which has `inputs` of them, to a CPU; returns the input's entry.
    /// An input that has sent an interrupt sends the former or the new one from here on.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoInterrupt`]; [`Problem::FarDestination`]; [`Problem::NoAnswer`];
    /// [`Problem::Refused`].
    pub fn redirect<W: Words>(
        &mut self,
        memory: &mut Store<W>,
        (source, inputs): (Bdf, u16),
        index: u16,
        signal: Signal,
        is_active_low: bool,
    ) -> Result<Redirection, Problem> {
        match self {
            Self::Intel(unit) if unit.remaps_interrupts() => {
                unit.open_inputs(memory, source, inputs + SPARES)?;
                unit.redirect(memory, source, index, signal, is_active_low)
            }
            _ => Ok(Redirection::direct(signal, is_active_low)),
        }
    }

    /// Returns the I/O APIC's spare entry of this number, below [`SPARES`]; `None` if its interrupts are not remapped,
    /// and entries name the CPU.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoInterrupt`] if entries are used up.
    pub fn spare<W: Words>(
        &mut self,
        memory: &mut Store<W>,
        (source, inputs): (Bdf, u16),
        number: u16,
    ) -> Result<Option<Spare>, Problem> {
        match self {
            Self::Intel(unit) if unit.remaps_interrupts() => {
                unit.open_inputs(memory, source, inputs + SPARES)?;
                unit.spare(source, inputs + number % SPARES).map(Some)
            }
            _ => Ok(None),
        }
    }
}
