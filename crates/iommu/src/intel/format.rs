// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of second-stage tables.

use paging::{Entry, Flags, Format};
use units::PhysAddr;

/// Entries of second-stage tables (section 9.8). Every page can be read; [`Flags::WRITABLE`] lets it be written, and no
/// other flag means anything. Device addresses are not sign-extended.
#[derive(Clone, Copy, Debug)]
pub enum SecondStage {}

const READ: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
/// Page size: set in an entry of level 2 or 3 that maps a page.
const LARGE: u64 = 1 << 7;
/// Bits 12 to 51: the physical address.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

impl Format for SecondStage {
    fn table(table: PhysAddr, _level: u8) -> u64 {
        (table.0 & ADDRESS) | READ | WRITE
    }

    fn page(frame: PhysAddr, flags: Flags, level: u8) -> u64 {
        let large = if level > 1 { LARGE } else { 0 };
        let write = if flags.contains(Flags::WRITABLE) { WRITE } else { 0 };
        (frame.0 & ADDRESS) | READ | write | large
    }

    fn decode(entry: u64, level: u8) -> Entry {
        let address = PhysAddr(entry & ADDRESS);
        let flags = if entry & WRITE != 0 { Flags::WRITABLE } else { Flags::empty() };
        match level {
            _ if entry & (READ | WRITE) == 0 => Entry::Absent,
            1 => Entry::Page(address, flags),
            2 | 3 if entry & LARGE != 0 => Entry::Page(address, flags),
            _ => Entry::Table(address),
        }
    }

    fn extend(low: u64) -> u64 {
        low & 0xffff_ffff_ffff
    }
}
