// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI Express configuration space in memory (PCI Firmware Specification 3.2, section 4.1.2).

use crate::table::{Signature, Table};
use crate::{Ecam, Fault, Tables};

/// Offset of the entries in bytes.
pub const MINIMUM_BYTES: u32 = 44;
const ENTRY_BYTES: u32 = 16;
/// Configuration space of one bus: 32 devices of 8 functions of 4 KiB.
const BUS_BYTES: u64 = 1 << 20;

/// Adopts the table's content. The walk ends where the list is full.
pub fn read(table: &Table<'_>, tables: &mut Tables) {
    for offset in (MINIMUM_BYTES..table.bytes()).step_by(ENTRY_BYTES as usize) {
        let result =
            table.array(offset).ok_or(Fault::TruncatedEntry { offset }).and_then(|entry| parse(&entry, offset));
        let fault = match result {
            Ok(ecam) => tables.mcfg.try_push(ecam).err().map(|_| Fault::NoRoom { offset }),
            Err(fault) => Some(fault),
        };
        let Some(fault) = fault else { continue };
        tables.warn(Signature::MCFG, fault);
        if matches!(fault, Fault::NoRoom { .. }) {
            return;
        }
    }
}

fn parse(entry: &[u8; ENTRY_BYTES as usize], offset: u32) -> Result<Ecam, Fault> {
    let [a0, a1, a2, a3, a4, a5, a6, a7, s0, s1, bus_start, bus_end, ..] = *entry;
    let base = u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]);
    let end = base.checked_add((u64::from(bus_end) + 1) * BUS_BYTES);
    if base == 0 || base % BUS_BYTES != 0 || bus_start > bus_end || end.is_none() {
        return Err(Fault::BadEntry { offset });
    }
    Ok(Ecam { base, segment: u16::from_le_bytes([s0, s1]), bus_start, bus_end })
}
