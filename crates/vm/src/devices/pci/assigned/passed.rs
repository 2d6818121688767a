// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bits of a guest's writes to configuration space that reach the hardware.

use super::description::Description;
use super::physical::Physical;
use crate::addr::AccessSize;
use crate::devices::pci::bar::Space;
use crate::devices::pci::function::Function;

/// The command register (PCI Local Bus 3.0, section 6.2.2): the only one that is written.
const COMMAND: u16 = 0x04;
const IO: u16 = 1 << 0;
const MEMORY: u16 = 1 << 1;
const MASTER: u16 = 1 << 2;
pub(super) const INTX_DISABLED: u16 = 1 << 10;

/// Bits of a register that are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The configuration register.
    pub register: u16,
    /// The bits.
    pub bits: u16,
    /// Why the hardware must have them.
    pub reason: &'static str,
}

/// All of it. The bits for decoding stay as the host's ranges need them: the guest's map and unmap.
pub const PASSED: &[Passed] = &[
    Passed {
        register: COMMAND,
        bits: MASTER,
        reason: "a driver stops DMA by it, and a kernel that takes over relies on that",
    },
    Passed {
        register: COMMAND,
        bits: INTX_DISABLED,
        reason: "a driver disables INTx by it; without a line it stays disabled",
    },
];

/// Bits that are passed on, and bits that are always set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Bits that were last passed on.
    pub passed: u16,
    decoding: u16,
    has_line: bool,
}

impl Command {
    /// After [`Description::probe`]: no bus mastering.
    pub(super) fn new(description: &Description) -> Self {
        let bit = |space| if space == Space::Io { IO } else { MEMORY };
        let decoding = description.ranges.iter().flatten().fold(0, |bits, range| bits | bit(range.bar.space()));
        Self { passed: INTX_DISABLED, decoding, has_line: description.line.is_some() }
    }

    /// Returns whether these bits can have been passed on.
    pub(super) fn is_possible(passed: u16) -> bool {
        passed & !PASSED.iter().fold(0, |bits, passed| bits | passed.bits) == 0
    }

    /// Returns the bits that the guest's command register asks for.
    pub(super) fn wanted(&self, function: &Function) -> u16 {
        let guests = u16::from_le_bytes([function.read(COMMAND as u8), function.read(COMMAND as u8 + 1)]);
        let disabled = if self.has_line { 0 } else { INTX_DISABLED };
        guests & (MASTER | INTX_DISABLED) | disabled
    }

    /// Returns whether the function may not use its line.
    pub(super) const fn is_intx_disabled(bits: u16) -> bool {
        bits & INTX_DISABLED != 0
    }

    /// Nothing but decoding: neither bus mastering nor INTx.
    pub(super) const fn quiet() -> u16 {
        INTX_DISABLED
    }

    /// Writes the hardware's register if anything changes. False if the function does not answer.
    pub(super) fn pass(&mut self, bits: u16, physical: &mut impl Physical) -> bool {
        bits == self.passed || self.write(bits, physical)
    }

    /// Writes the hardware's register. False if the function does not answer.
    pub(super) fn write(&mut self, bits: u16, physical: &mut impl Physical) -> bool {
        let now = physical.read_config(COMMAND, AccessSize::Word) as u16;
        if now == u16::MAX {
            return false;
        }
        let others = now & !(IO | MEMORY | MASTER | INTX_DISABLED);
        physical.write_config(COMMAND, AccessSize::Word, u32::from(others | self.decoding | bits));
        self.passed = bits;
        true
    }
}
