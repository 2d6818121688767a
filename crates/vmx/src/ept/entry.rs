// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of EPT (section 29.3.2).

use paging::{Entry, Flags, Format, PhysAddr};

/// A memory type, as EPT and IA32_PAT number them (section 12.3; others are reserved).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MemoryType {
    /// UC.
    Uncacheable = 0,
    /// WC.
    WriteCombining = 1,
    /// WT.
    WriteThrough = 4,
    /// WP.
    WriteProtected = 5,
    /// WB.
    WriteBack = 6,
}

impl MemoryType {
    /// The type with a number from 0 to 7; `None` if it is reserved.
    pub const fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Uncacheable,
            1 => Self::WriteCombining,
            4 => Self::WriteThrough,
            5 => Self::WriteProtected,
            6 => Self::WriteBack,
            _ => return None,
        })
    }
}

/// Entries of EPT, for [`paging::Tables`].
///
/// Every page can be read. [`Flags::USER`] is always there, as in SVM's nested tables; [`Flags::GLOBAL`] means nothing.
/// [`Flags::CACHE_DISABLE`] makes a page uncacheable, [`Flags::WRITE_THROUGH`] alone write-through, neither leaves the
/// choice to the guest's PAT (write-back, "ignore PAT" clear). Guest-physical addresses are not sign-extended.
#[derive(Clone, Copy, Debug)]
pub enum Ept {}

pub(super) const READ: u64 = 1 << 0;
pub(super) const WRITE: u64 = 1 << 1;
pub(super) const EXECUTE: u64 = 1 << 2;
const MEMORY_TYPE_SHIFT: u32 = 3;
/// Page size: set in an entry of level 2 or 3 that maps a page.
pub(super) const LARGE: u64 = 1 << 7;
/// Bits 12 to 51: the physical address.
pub(super) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

impl Format for Ept {
    fn table(table: PhysAddr, _level: u8) -> u64 {
        (table.0 & ADDRESS) | READ | WRITE | EXECUTE
    }

    fn page(frame: PhysAddr, flags: Flags, level: u8) -> u64 {
        let large = if level > 1 { LARGE } else { 0 };
        let write = if flags.contains(Flags::WRITABLE) { WRITE } else { 0 };
        let execute = if flags.contains(Flags::NO_EXECUTE) { 0 } else { EXECUTE };
        let memory_type = (memory_type(flags) as u64) << MEMORY_TYPE_SHIFT;
        (frame.0 & ADDRESS) | READ | write | execute | memory_type | large
    }

    fn decode(entry: u64, level: u8) -> Entry {
        let address = PhysAddr(entry & ADDRESS);
        match level {
            _ if entry & (READ | WRITE | EXECUTE) == 0 => Entry::Absent,
            1 => Entry::Page(address, flags(entry)),
            2 | 3 if entry & LARGE != 0 => Entry::Page(address, flags(entry)),
            _ => Entry::Table(address),
        }
    }

    fn extend(low: u64) -> u64 {
        low & 0xffff_ffff_ffff
    }
}

fn memory_type(flags: Flags) -> MemoryType {
    match (flags.contains(Flags::CACHE_DISABLE), flags.contains(Flags::WRITE_THROUGH)) {
        (true, _) => MemoryType::Uncacheable,
        (false, true) => MemoryType::WriteThrough,
        (false, false) => MemoryType::WriteBack,
    }
}

fn flags(entry: u64) -> Flags {
    let mut flags = Flags::USER;
    flags.set(Flags::WRITABLE, entry & WRITE != 0);
    flags.set(Flags::NO_EXECUTE, entry & EXECUTE == 0);
    match MemoryType::from_number(entry >> MEMORY_TYPE_SHIFT & 7) {
        Some(MemoryType::WriteBack) => {}
        Some(MemoryType::WriteThrough | MemoryType::WriteProtected) => flags.insert(Flags::WRITE_THROUGH),
        _ => flags.insert(Flags::CACHE_DISABLE),
    }
    flags
}
