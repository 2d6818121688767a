// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of I/O page tables (section 2.2.3, host translations).

use paging::{Entry, Flags, Format};
use units::PhysAddr;

/// Entries of AMD-Vi's I/O page tables. Each states the level of the table that it points to, 0 for a page. Rights are
/// those of all entries on the way, so that an entry for a table has both.
///
/// Pages are mapped "force coherent": accesses snoop the CPUs' caches, for all attributes of the request.
#[derive(Clone, Copy, Debug)]
pub enum AmdFormat {}

/// PR.
const PRESENT: u64 = 1 << 0;
/// Position of the next table's level, in bits 9 to 11.
const NEXT_LEVEL_SHIFT: u32 = 9;
const NEXT_LEVEL: u64 = 0b111 << NEXT_LEVEL_SHIFT;
/// Bits 12 to 51: the physical address.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// FC.
const FORCE_COHERENT: u64 = 1 << 60;
/// IR.
const READ: u64 = 1 << 61;
/// IW.
const WRITE: u64 = 1 << 62;

impl Format for AmdFormat {
    fn table(table: PhysAddr, level: u8) -> u64 {
        let next = u64::from(level - 1) << NEXT_LEVEL_SHIFT;
        (table.0 & ADDRESS) | next | PRESENT | READ | WRITE
    }

    fn page(frame: PhysAddr, flags: Flags, _: u8) -> u64 {
        let write = if flags.contains(Flags::WRITABLE) { WRITE } else { 0 };
        (frame.0 & ADDRESS) | PRESENT | FORCE_COHERENT | READ | write
    }

    /// Decodes an entry. One that skips levels, or maps a page of another size than its level's, counts as absent: no
    /// entry here is so.
    fn decode(entry: u64, level: u8) -> Entry {
        let address = PhysAddr(entry & ADDRESS);
        let next = ((entry & NEXT_LEVEL) >> NEXT_LEVEL_SHIFT) as u8;
        let flags = if entry & WRITE == 0 { Flags::empty() } else { Flags::WRITABLE };
        match next {
            _ if entry & PRESENT == 0 => Entry::Absent,
            0 if level <= 3 => Entry::Page(address, flags),
            next if level > 1 && next == level - 1 => Entry::Table(address),
            _ => Entry::Absent,
        }
    }

    fn extend(low: u64) -> u64 {
        low & 0xffff_ffff_ffff
    }
}
