// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misconfigurations of EPT entries (section 29.3.3.1).

use core::fmt;

use super::entry::{ADDRESS, EXECUTE, LARGE, MemoryType, READ, WRITE};

/// The limits of a CPU on EPT entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Width of physical addresses in bits.
    pub physical_bits: u8,
    /// Pages can be executed without being readable.
    pub execute_only: bool,
    /// Pages of 1 GiB.
    pub pages_1_gib: bool,
    /// Pages of 2 MiB.
    pub pages_2_mib: bool,
}

/// A misconfiguration of an EPT entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misconfiguration {
    /// It can be written and not read.
    WritableNotReadable,
    /// It can be executed only, which the CPU does not have.
    ExecuteOnly,
    /// An address bit beyond the CPU's width is set.
    AddressTooWide,
    /// A bit is set that is reserved in an entry that points to a table.
    ReservedInTable,
    /// A bit is set below the alignment of a large page.
    MisalignedPage,
    /// The page is of a size that the CPU does not have.
    PageTooLarge,
    /// The memory type does not exist.
    MemoryType,
}

impl fmt::Display for Misconfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WritableNotReadable => "it can be written and not read",
            Self::ExecuteOnly => "it can be executed only, which this CPU does not have",
            Self::AddressTooWide => "its address is wider than this CPU's",
            Self::ReservedInTable => "it points to a table and has a reserved bit",
            Self::MisalignedPage => "its page's address is not aligned to the page's size",
            Self::PageTooLarge => "its page is of a size that this CPU does not have",
            Self::MemoryType => "its memory type does not exist",
        })
    }
}

/// Returns what makes an entry at `level` (1 to 4) misconfigured. An absent entry is not.
///
/// # Errors
/// The first [`Misconfiguration`].
pub fn check(entry: u64, level: u8, limits: &Limits) -> Result<(), Misconfiguration> {
    let (read, write, execute) = (entry & READ != 0, entry & WRITE != 0, entry & EXECUTE != 0);
    let is_page = level == 1 || level < 4 && entry & LARGE != 0;
    let is_too_large = level == 3 && !limits.pages_1_gib || level == 2 && !limits.pages_2_mib;
    let checks = [
        (Misconfiguration::WritableNotReadable, write && !read),
        (Misconfiguration::ExecuteOnly, execute && !read && !limits.execute_only),
        (Misconfiguration::AddressTooWide, entry & beyond(limits.physical_bits) != 0),
        (Misconfiguration::ReservedInTable, !is_page && entry & reserved_in_table(level) != 0),
        (Misconfiguration::PageTooLarge, is_page && is_too_large),
        (Misconfiguration::MisalignedPage, is_page && entry & below_alignment(level) != 0),
        (Misconfiguration::MemoryType, is_page && MemoryType::from_number(entry >> 3 & 7).is_none()),
    ];
    let is_present = read || write || execute;
    match checks.into_iter().find(|(_, fails)| *fails) {
        Some((misconfiguration, _)) if is_present => Err(misconfiguration),
        _ => Ok(()),
    }
}

/// Address bits from the CPU's width to bit 51.
fn beyond(physical_bits: u8) -> u64 {
    ADDRESS & u64::MAX.checked_shl(physical_bits.into()).unwrap_or(0)
}

/// Bits 3 to 7 at the root, 3 to 6 below, where bit 7 makes a page.
fn reserved_in_table(level: u8) -> u64 {
    if level >= 4 { 0xf8 } else { 0x78 }
}

/// Bits from 12 to the alignment of a page at `level`.
fn below_alignment(level: u8) -> u64 {
    match level {
        1 => 0,
        2 => 0x1f_f000,
        _ => 0x3fff_f000,
    }
}
