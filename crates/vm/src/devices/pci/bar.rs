// SPDX-License-Identifier: MIT OR Apache-2.0
//! Base address registers (PCI Local Bus 3.0, section 6.2.5.1).

use crate::platform::layout::FIXED_PORTS_END;

/// Base address registers of an ordinary header.
pub const BARS: usize = 6;
/// The first one's register.
pub(super) const FIRST_BAR: usize = 0x10;

const IO_SPACE: u32 = 1 << 0;
const WIDE: u32 = 0b10 << 1;
const PREFETCHABLE: u32 = 1 << 3;
/// Bits of a base address register that are no address.
const IO_FLAGS: u64 = 0b11;
const MEMORY_FLAGS: u64 = 0b1111;

/// A range that a function asks to decode, at an address of the guest's choice. Sizes are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bar {
    /// Ports: 4 to 256.
    Io {
        /// Number of ports.
        ports: u16,
    },
    /// Memory below 4 GiB: at least 16 bytes.
    Memory32 {
        /// Bytes.
        bytes: u32,
    },
    /// Memory anywhere: at least 16 bytes. It takes the next register, too.
    Memory64 {
        /// Bytes.
        bytes: u64,
        /// Reads have no effect.
        is_prefetchable: bool,
    },
}

/// The space of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Ports.
    Io,
    /// Memory.
    Memory,
}

/// The range that a base address register decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The space that it decodes.
    pub space: Space,
    /// The first address.
    pub first: u64,
    /// The last address.
    pub last: u64,
}

impl Window {
    /// Returns whether both have an address.
    pub fn overlaps(self, other: Self) -> bool {
        self.space == other.space && self.first <= other.last && other.first <= self.last
    }
}

/// Where each base address register of a function decodes.
pub type Windows = [Option<Window>; BARS];

impl Bar {
    /// The space that it decodes.
    pub const fn space(self) -> Space {
        match self {
            Self::Io { .. } => Space::Io,
            _ => Space::Memory,
        }
    }

    /// Its size.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Io { ports } => ports as u64,
            Self::Memory32 { bytes } => bytes as u64,
            Self::Memory64 { bytes, .. } => bytes,
        }
    }

    /// Returns how many registers it takes.
    pub const fn registers(self) -> usize {
        if matches!(self, Self::Memory64 { .. }) { 2 } else { 1 }
    }

    /// Returns whether a function can have it.
    pub const fn is_possible(self) -> bool {
        let sizes = match self {
            Self::Io { .. } => 4..=256,
            _ => 16..=1 << 62,
        };
        self.bytes().is_power_of_two() && *sizes.start() <= self.bytes() && self.bytes() <= *sizes.end()
    }

    /// Returns its value before the guest has written it.
    pub(super) const fn flags(self) -> u32 {
        match self {
            Self::Io { .. } => IO_SPACE,
            Self::Memory32 { .. } => 0,
            Self::Memory64 { is_prefetchable: false, .. } => WIDE,
            Self::Memory64 { is_prefetchable: true, .. } => WIDE | PREFETCHABLE,
        }
    }

    /// The bits that the guest can write: a guest finds out the size by them. There are 65,536 ports.
    pub(super) const fn write_mask(self) -> u64 {
        let address = !(self.bytes() - 1);
        match self {
            Self::Io { .. } => address & 0xffff & !IO_FLAGS,
            Self::Memory32 { .. } => address & 0xffff_ffff & !MEMORY_FLAGS,
            Self::Memory64 { .. } => address & !MEMORY_FLAGS,
        }
    }

    /// Returns where it decodes with this value. The ports of the machine's fixed devices are never a function's.
    pub(super) fn window(self, register: u64) -> Option<Window> {
        let first = register & self.write_mask();
        let last = first + (self.bytes() - 1);
        let is_free = self.space() == Space::Memory || first >= u64::from(FIXED_PORTS_END);
        is_free.then_some(Window { space: self.space(), first, last })
    }
}
