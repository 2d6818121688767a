// SPDX-License-Identifier: MIT OR Apache-2.0
//! Format of an entry: bits, and the valid addresses.

use bitflags::bitflags;
use units::PhysAddr;

bitflags! {
    /// Accesses that a mapping permits. A mapped page is present, and readable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Flags: u64 {
        /// May be written.
        const WRITABLE = 1 << 1;
        /// May be used in user mode. Nested tables set it always (see [`Nested`](super::Nested)).
        const USER = 1 << 2;
        /// Write-through caching (PWT).
        const WRITE_THROUGH = 1 << 3;
        /// Not cached (PCD): device registers.
        const CACHE_DISABLE = 1 << 4;
        /// Survives a load of CR3. Means nothing in nested tables, where it reads back clear.
        const GLOBAL = 1 << 8;
        /// May not be executed; needs EFER.NXE.
        const NO_EXECUTE = 1 << 63;
    }
}

/// An entry, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Maps nothing.
    Absent,
    /// Points to a table of the next level.
    Table(PhysAddr),
    /// Maps a page.
    Page(PhysAddr, Flags),
}

/// Encoding of entries, and width of addresses. `level` is 1 for the entries that map 4 KiB, 2 for 2 MiB, 3 for 1 GiB,
/// 4 for the root's. An all-zero entry is absent in every format.
pub trait Format {
    /// The entry at `level` (2 to 4) that points to `table`, restricting nothing: the page's own entry decides.
    fn table(table: PhysAddr, level: u8) -> u64;

    /// The entry at `level` (1 to 3) that maps a page at `frame`.
    fn page(frame: PhysAddr, flags: Flags, level: u8) -> u64;

    /// Decodes an entry at `level`.
    fn decode(entry: u64, level: u8) -> Entry;

    /// Returns the full address with the low 48 bits `low`; an address for which this is not the identity is refused.
    fn extend(low: u64) -> u64;
}

/// Entries of the CPU's own long-mode tables (AMD APM vol 2, section 5.3); addresses are sign-extended from
/// bit 47.
#[derive(Clone, Copy, Debug)]
pub enum Host {}

/// Entries of SVM's nested tables (AMD APM vol 2, section 15.25): the host's format, except that every access of a
/// guest counts as a user access (15.25.5), so `USER` is always set, and that guest-physical addresses are not
/// sign-extended.
#[derive(Clone, Copy, Debug)]
pub enum Nested {}

const PRESENT: u64 = 1 << 0;
/// Page size: set in an entry of level 2 or 3 that maps a page.
const LARGE: u64 = 1 << 7;
/// Bits 12 to 51: the physical address.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

impl Format for Host {
    fn table(table: PhysAddr, _: u8) -> u64 {
        (table.0 & ADDRESS) | PRESENT | Flags::WRITABLE.bits() | Flags::USER.bits()
    }

    fn page(frame: PhysAddr, flags: Flags, level: u8) -> u64 {
        let large = if level > 1 { LARGE } else { 0 };
        (frame.0 & ADDRESS) | PRESENT | large | flags.bits()
    }

    fn decode(entry: u64, level: u8) -> Entry {
        let address = PhysAddr(entry & ADDRESS);
        match level {
            _ if entry & PRESENT == 0 => Entry::Absent,
            1 => Entry::Page(address, Flags::from_bits_truncate(entry)),
            2 | 3 if entry & LARGE != 0 => Entry::Page(address, Flags::from_bits_truncate(entry)),
            _ => Entry::Table(address),
        }
    }

    fn extend(low: u64) -> u64 {
        (((low << 16) as i64) >> 16) as u64
    }
}

impl Format for Nested {
    fn table(table: PhysAddr, level: u8) -> u64 {
        Host::table(table, level)
    }

    fn page(frame: PhysAddr, flags: Flags, level: u8) -> u64 {
        Host::page(frame, (flags | Flags::USER).difference(Flags::GLOBAL), level)
    }

    fn decode(entry: u64, level: u8) -> Entry {
        Host::decode(entry, level)
    }

    fn extend(low: u64) -> u64 {
        low & 0xffff_ffff_ffff
    }
}
