// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of a physical function while it is probed.

use ::pci::Bdf;

use super::physical::Physical;
use super::problem::{Problem, Reason};
use crate::addr::AccessSize;

/// A physical function and its name, for errors.
pub(super) struct Prober<'a, P> {
    physical: &'a mut P,
    name: Bdf,
}

impl<'a, P: Physical> Prober<'a, P> {
    pub(super) fn new(physical: &'a mut P, name: Bdf) -> Self {
        Self { physical, name }
    }

    pub(super) fn write_word(&mut self, register: u16, value: u32) {
        self.physical.write_config(register, AccessSize::Word, value);
    }

    /// Reads a register that is never all ones.
    pub(super) fn read(&mut self, register: u16) -> Result<u32, Problem> {
        let value = self.read_any(register);
        if value == u32::MAX { Err(self.problem(register, Reason::Vanished)) } else { Ok(value) }
    }

    pub(super) fn read_any(&mut self, register: u16) -> u32 {
        self.physical.read_config(register, AccessSize::Dword)
    }

    pub(super) fn write(&mut self, register: u16, value: u32) {
        self.physical.write_config(register, AccessSize::Dword, value);
    }

    pub(super) fn problem(&self, register: u16, reason: Reason) -> Problem {
        Problem { function: self.name, register, reason }
    }
}
