// SPDX-License-Identifier: MIT OR Apache-2.0
//! A generic address: which space a register is in, and where (ACPI 6.5, section 5.2.3.2).

use crate::table::Table;

/// A register's place as tables give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenericAddress {
    /// Address space: [`MEMORY`](Self::MEMORY), [`IO`](Self::IO), [`PCI_CONFIGURATION`](Self::PCI_CONFIGURATION),
    /// others.
    pub space: u8,
    /// Address there.
    pub address: u64,
}

impl GenericAddress {
    /// Physical memory.
    pub const MEMORY: u8 = 0;
    /// I/O ports.
    pub const IO: u8 = 1;
    /// Configuration space of bus 0, segment 0.
    pub const PCI_CONFIGURATION: u8 = 2;

    /// The address at `offset` of `table`; `None` if the table ends before, or the register is not there (address 0).
    pub fn at(table: &Table<'_>, offset: u32) -> Option<Self> {
        let [space, _width, _bit_offset, _access, address @ ..] = table.array::<12>(offset)?;
        let address = u64::from_le_bytes(address);
        (address != 0).then_some(Self { space, address })
    }

    /// The I/O port, if it is one with `bytes` ports from there on.
    pub fn port(&self, bytes: u16) -> Option<u16> {
        let port = u16::try_from(self.address).ok()?;
        port.checked_add(bytes.saturating_sub(1))?;
        (self.space == Self::IO).then_some(port)
    }
}
