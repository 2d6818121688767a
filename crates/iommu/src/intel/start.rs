// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking a unit over, from reset or from firmware or a kernel that left it enabled.
//!
//! Enabled translation stays enabled: the root table is replaced under it (section 6.6), so that each access passes
//! the former tables or these. The table mode cannot be changed so. A unit that was left in scalable mode is disabled
//! for a moment, in which protected memory regions keep functions from all memory.

use pci::Bdf;

use crate::domain::Domain;
use crate::hardware::{Memory, Registers, wait_for};
use crate::intel::capabilities::Capabilities;
use crate::intel::coherence::Stores;
use crate::intel::faults::mask_events;
use crate::intel::format::SecondStage;
use crate::intel::queue::{self, Command, Queue};
use crate::intel::registers::{
    ADVANCED_FAULT_LOG, INTERRUPT_REMAPPING, PROTECTED_ENABLE, PROTECTED_HIGH_BASE, PROTECTED_HIGH_LIMIT,
    PROTECTED_LOW_BASE, PROTECTED_LOW_LIMIT, PROTECTED_ON, PROTECTED_STATUS, ROOT_TABLE, SET_ROOT_TABLE, TABLE_MODE,
    TRANSLATION, once, set, status,
};
use crate::intel::tables::Contexts;
use crate::intel::unit::{Unit, context_of};
use crate::problem::Problem;

/// The place of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The segment group of its functions.
    pub segment: u16,
    /// Bytes of registers that can be reached: a power of two of 4 KiB pages, by the DMAR table.
    pub window_bytes: u32,
}

impl<R: Registers> Unit<R> {
    /// Takes the unit over: every function is blocked but those in `reserved`, which reach their domains, such as the
    /// regions that firmware claims for them (RMRR). Interrupts pass unchecked until
    /// [`remap_interrupts`](Self::remap_interrupts).
    ///
    /// # Errors
    /// [`Problem::Absurd`] or [`Problem::Lacks`] for a unit that cannot be used, which is as it was;
    /// [`Problem::NotHere`], [`Problem::OutOfMemory`], [`Problem::NoAnswer`], [`Problem::Refused`]. The memory of
    /// tables stays allocated if the unit may use it.
    pub fn take_over<M: Memory>(
        mut registers: R,
        memory: &mut M,
        place: Place,
        reserved: &[(Bdf, &Domain<SecondStage>)],
    ) -> Result<Self, Problem> {
        let capabilities = Capabilities::read(&mut registers, place.window_bytes)?;
        let must_pause = must_pause(&mut registers, capabilities)?;
        let contexts = contexts(memory, capabilities, place.segment, reserved)?;
        let queue = match Queue::new(memory) {
            Ok(queue) => queue,
            Err(problem) => {
                contexts.free(memory);
                return Err(problem);
            }
        };
        let mut unit = Self { registers, capabilities, segment: place.segment, contexts, queue, remapping: None };
        unit.silence()?;
        unit.queue.start(&mut unit.registers)?;
        if must_pause {
            unit.protect_all()?;
            set(&mut unit.registers, TRANSLATION, false, "disabling translation")?;
        }
        unit.replace_root(memory)?;
        set(&mut unit.registers, TRANSLATION, true, "enabling translation")?;
        unit.unprotect()?;
        Ok(unit)
    }

    /// Disables what the former owner had enabled beside translation: its queue, its log, its interrupts.
    fn silence(&mut self) -> Result<(), Problem> {
        mask_events(&mut self.registers);
        queue::stop(&mut self.registers)?;
        if status(&mut self.registers)? & INTERRUPT_REMAPPING != 0 {
            set(&mut self.registers, INTERRUPT_REMAPPING, false, "disabling interrupt remapping")?;
        }
        if status(&mut self.registers)? & ADVANCED_FAULT_LOG != 0 {
            set(&mut self.registers, ADVANCED_FAULT_LOG, false, "disabling the advanced fault log")?;
        }
        Ok(())
    }

    /// Caches are dropped in this order: translations are found through context entries (section 6.6).
    fn replace_root(&mut self, memory: &mut impl Memory) -> Result<(), Problem> {
        self.flush_stores()?;
        self.registers.write64(ROOT_TABLE, self.contexts.root().0);
        once(&mut self.registers, SET_ROOT_TABLE, "setting the root table")?;
        self.command(memory, Command::Contexts)?;
        let drain = self.drain();
        self.command(memory, Command::Translations(drain))
    }

    /// Enables protected memory (section 11.4): no function reaches memory below 4 GiB, nor above.
    fn protect_all(&mut self) -> Result<(), Problem> {
        self.unprotect()?;
        self.registers.write32(PROTECTED_LOW_BASE, 0);
        self.registers.write32(PROTECTED_LOW_LIMIT, u32::MAX);
        self.registers.write64(PROTECTED_HIGH_BASE, 1 << 32);
        self.registers.write64(PROTECTED_HIGH_LIMIT, u64::MAX);
        self.protect(true, "enabling protected memory regions")
    }

    fn unprotect(&mut self) -> Result<(), Problem> {
        match self.capabilities.has_protected_memory() {
            true => self.protect(false, "disabling protected memory regions"),
            false => Ok(()),
        }
    }

    fn protect(&mut self, is_on: bool, what: &'static str) -> Result<(), Problem> {
        self.registers.write32(PROTECTED_ENABLE, if is_on { PROTECTED_ON } else { 0 });
        wait_for(&mut self.registers, what, |registers| {
            (registers.read32(PROTECTED_ENABLE) & PROTECTED_STATUS != 0) == is_on
        })
    }
}

/// Returns whether the unit translates in another mode than legacy, which cannot be replaced while it does.
fn must_pause(registers: &mut impl Registers, capabilities: Capabilities) -> Result<bool, Problem> {
    let is_on = status(registers)? & TRANSLATION != 0;
    if !is_on || registers.read64(ROOT_TABLE) & TABLE_MODE == 0 {
        return Ok(false);
    }
    match capabilities.can_protect_all() {
        true => Ok(true),
        false => {
            Err(Problem::Lacks { feature: "protected memory regions, to leave scalable mode (CAP.PLMR, CAP.PHMR)" })
        }
    }
}

fn contexts<M: Memory>(
    memory: &mut M,
    capabilities: Capabilities,
    segment: u16,
    reserved: &[(Bdf, &Domain<SecondStage>)],
) -> Result<Contexts, Problem> {
    let contexts = Contexts::new(memory, Stores { is_coherent: capabilities.is_coherent() })?;
    let filled = reserved.iter().try_for_each(|(source, domain)| {
        if source.segment != segment {
            return Err(Problem::NotHere { source: *source });
        }
        let context = context_of(memory, capabilities, domain)?;
        contexts.set(memory, source.requester(), context)
    });
    match filled {
        Ok(()) => Ok(contexts),
        Err(problem) => {
            contexts.free(memory);
            Err(problem)
        }
    }
}
