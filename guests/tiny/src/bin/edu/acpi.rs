// SPDX-License-Identifier: MIT OR Apache-2.0
//! The base of the enhanced configuration mechanism, from ACPI's table MCFG (ACPI 6.5, section 5.2; PCI Firmware
//! Specification 3.3, section 4.1.2).

use core::ops::Range;

/// The range in which a PC's firmware leaves the root pointer, 16-byte aligned.
const ROOT_AREA: Range<u64> = 0xe_0000..0x10_0000;
const ROOT_SIGNATURE: [u32; 2] = [u32::from_le_bytes(*b"RSD "), u32::from_le_bytes(*b"PTR ")];
const MCFG: u32 = u32::from_le_bytes(*b"MCFG");
const HEADER_BYTES: u64 = 36;
/// Tables that are read of a list.
const MOST_TABLES: u64 = 64;
/// Bytes before MCFG's first entry.
const FIRST_ENTRY: u64 = 44;

/// Returns the address of bus 0's configuration space; `None` where there is no such memory below 4 GiB.
pub fn ecam() -> Option<u64> {
    let root = ROOT_AREA.step_by(16).find(|&at| [word(at), word(at + 4)] == ROOT_SIGNATURE)?;
    let revision = word(root + 12) >> 24;
    // From revision 2 on there is a list of 64-bit addresses.
    let (list, step) = if revision >= 2 { (quad(root + 24), 8) } else { (word(root + 16).into(), 4) };
    is_mapped(list).then_some(())?;
    let bytes = u64::from(word(list + 4)).saturating_sub(HEADER_BYTES);
    let tables = (0..(bytes / step).min(MOST_TABLES)).map(|entry| {
        let at = list + HEADER_BYTES + entry * step;
        if step == 8 { quad(at) } else { word(at).into() }
    });
    let table = tables.filter(|&table| is_mapped(table)).find(|&table| word(table) == MCFG)?;
    let base = quad(table + FIRST_ENTRY);
    let first_bus = u64::from(word(table + FIRST_ENTRY + 8) >> 16 & 0xff);
    (is_mapped(base) && first_bus == 0).then_some(base)
}

fn word(address: u64) -> u32 {
    // SAFETY: the tables are in memory that is mapped one to one, and never change. They need not be aligned.
    unsafe { (address as *const u32).read_unaligned() }
}

fn quad(address: u64) -> u64 {
    u64::from(word(address)) | u64::from(word(address + 4)) << 32
}

/// Returns whether an address is in the first 4 GiB, which are mapped.
fn is_mapped(address: u64) -> bool {
    address != 0 && address < 0xffff_f000
}
