// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU, whichever extension runs it: what is done to it as a whole. [`super::state`] has its registers.

use handover::state::Extended;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::machine::Full;

use crate::arch::svm::SvmVcpu;

/// One vCPU.
pub enum Vcpu {
    /// AMD's.
    Svm(SvmVcpu),
}

impl Vcpu {
    /// It comes to the calling CPU, where no other has this tag (from 1 to [`super::Virt::tags`]): nothing that was
    /// translated under the tag counts any more.
    pub fn arrive(&mut self, tag: u32) {
        each!(self, vendors => vendors.arrive(tag));
    }

    /// Loads the registers that stay in the CPU across exits.
    pub fn load(&mut self) {
        each!(self, vendors => vendors.load());
    }

    /// Takes them out again; nothing of the guest is left in the CPU's registers.
    pub fn unload(&mut self) {
        each!(self, vendors => vendors.unload());
    }

    /// Chooses the way in and out of the guest again: whether its time is counted has changed, or its SPEC_CTRL.
    pub fn choose_switch(&mut self) {
        each!(self, vendors => vendors.choose_switch());
    }

    /// Runs it, loaded, until it leaves the guest. Interrupts are masked before and after.
    #[inline]
    pub fn run(&mut self) -> Exit {
        each!(self, vendors => vendors.run())
    }

    /// Saves the registers that stay in the CPU across exits, while it is not loaded. Returns the bytes of `tail` in
    /// use.
    ///
    /// # Errors
    /// `tail` is too short.
    pub fn save_extended(&self, into: &mut Extended, tail: &mut [u8]) -> Result<usize, Full> {
        each!(self, vendors => vendors.save_extended(into, tail))
    }

    /// Restores them, while it is not loaded.
    ///
    /// # Errors
    /// The CPU cannot load them; then nothing has changed.
    pub fn restore_extended(&mut self, from: &Extended, tail: &[u8]) -> Result<(), StateError> {
        each!(self, vendors => vendors.restore_extended(from, tail))
    }
}
