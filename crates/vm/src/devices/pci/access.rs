// SPDX-License-Identifier: MIT OR Apache-2.0
//! An access to configuration registers.

use super::registers::CONFIG_BYTES;
use super::slot::Slot;
use crate::addr::AccessSize;

/// Registers of one slot, from the first that an access touches to the last that it may touch.
#[derive(Clone, Copy, Debug)]
pub struct ConfigAccess {
    /// The slot.
    pub slot: Slot,
    first: u16,
    end: u16,
    /// How wide it is.
    pub(super) size: AccessSize,
}

impl ConfigAccess {
    /// By the data port that is `lane` ports behind the first; the address register selects the registers.
    pub(super) const fn by_port(slot: u8, register: u8, lane: u8, size: AccessSize) -> Self {
        Self { slot: Slot(slot), first: register as u16 + lane as u16, end: register as u16 + 4, size }
    }

    /// By the enhanced window; `None` past bus 0.
    pub fn enhanced(offset: u64, size: AccessSize) -> Option<Self> {
        let slot = Slot(u8::try_from(offset >> 12).ok()?);
        Some(Self { slot, first: (offset & 0xfff) as u16, end: CONFIG_BYTES as u16, size })
    }

    /// The register of each byte of the access, lowest first; `None` for those past the end.
    pub fn registers(self) -> impl Iterator<Item = Option<u8>> {
        let registers = (self.first..).take(self.size.bytes());
        registers.map(move |register| if register < self.end { u8::try_from(register).ok() } else { None })
    }

    /// The first register that is there.
    pub fn first(self) -> Option<u8> {
        self.registers().next().flatten()
    }

    /// Its offset in extended configuration space, which only the enhanced window reaches, if it begins there.
    pub(super) fn extended(self) -> Option<u16> {
        self.first.checked_sub(CONFIG_BYTES as u16)
    }

    /// Returns whether it touches registers of this range.
    pub(super) fn touches(self, first: usize, end: usize) -> bool {
        self.registers().flatten().any(|register| (first..end).contains(&usize::from(register)))
    }
}
