// SPDX-License-Identifier: MIT OR Apache-2.0
//! System resource affinity table: which memory and which CPUs are on which NUMA node (ACPI 6.5, section 5.2.16).
//!
//! Firmware numbers nodes by proximity domains, any 32-bit numbers; here they are numbered from 0, as they appear.
//! Whether the memory exists is for the holder of the memory map.

use crate::table::{Signature, Table};
use crate::{Fault, MemoryAffinity, Tables};

/// Offset of the entries in bytes.
pub const MINIMUM_BYTES: u32 = 48;
/// Bytes of the largest entry that is read.
const ENTRY_BYTES: usize = 40;
const ENABLED: u32 = 1;
const HOT_PLUGGABLE: u32 = 2;
const NON_VOLATILE: u32 = 4;

/// Adopts the table's content. After the MADT: nodes are noted with the CPUs it names.
pub fn read(table: &Table<'_>, tables: &mut Tables) {
    let mut offset = MINIMUM_BYTES;
    while offset < table.bytes() {
        match read_entry(table, offset, tables) {
            Ok(bytes) => offset += u32::from(bytes),
            Err(fault) => return tables.warn(Signature::SRAT, fault),
        }
    }
}

/// Takes over one entry; returns its length, without which the next one cannot be found.
fn read_entry(table: &Table<'_>, offset: u32, tables: &mut Tables) -> Result<u8, Fault> {
    let truncated = Fault::TruncatedEntry { offset };
    let [kind, bytes] = table.array(offset).ok_or(truncated)?;
    if bytes < 2 || table.bytes() - offset < u32::from(bytes) {
        return Err(truncated);
    }
    let mut buffer = [0; ENTRY_BYTES];
    let entry = table.read_some(offset, &mut buffer[..ENTRY_BYTES.min(usize::from(bytes))])?;
    let taken = match kind {
        0 => entry.first_chunk().ok_or(truncated).and_then(|entry| take_local_apic(entry, offset, tables)),
        1 => entry.first_chunk().ok_or(truncated).and_then(|entry| take_memory(entry, offset, tables)),
        2 => entry.first_chunk().ok_or(truncated).and_then(|entry| take_x2apic(entry, offset, tables)),
        _ => Ok(()),
    };
    taken.unwrap_or_else(|fault| tables.warn(Signature::SRAT, fault));
    Ok(bytes)
}

/// Section 5.2.16.1. The domain's upper bytes came later than its lowest.
fn take_local_apic(entry: &[u8; 16], offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let [_, _, d0, apic_id, f0, f1, f2, f3, _, d1, d2, d3, ..] = *entry;
    let (domain, flags) = (u32::from_le_bytes([d0, d1, d2, d3]), u32::from_le_bytes([f0, f1, f2, f3]));
    take_cpu(u32::from(apic_id), domain, flags, offset, tables)
}

/// Section 5.2.16.3.
fn take_x2apic(entry: &[u8; 24], offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
    take_cpu(word(8), word(4), word(12), offset, tables)
}

/// A CPU that the MADT does not name runs nothing here: its node does not matter.
fn take_cpu(apic_id: u32, domain: u32, flags: u32, offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    if flags & ENABLED == 0 || !tables.cpus.iter().any(|known| known.apic_id == apic_id) {
        return Ok(());
    }
    let node = node(domain, offset, tables)?;
    let mut named = tables.cpus.iter_mut().filter(|known| known.apic_id == apic_id);
    named.by_ref().for_each(|known| known.node = node);
    Ok(())
}

/// Section 5.2.16.2. Non-volatile memory is not offered by the memory map.
fn take_memory(entry: &[u8; 32], offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let (base, bytes, flags) = (long(8), long(16), word(28));
    if flags & ENABLED == 0 || flags & NON_VOLATILE != 0 {
        return Ok(());
    }
    if bytes == 0 || base.checked_add(bytes).is_none() {
        return Err(Fault::BadEntry { offset });
    }
    let node = node(word(2), offset, tables)?;
    let affinity = MemoryAffinity { base, bytes, node, is_hot_pluggable: flags & HOT_PLUGGABLE != 0 };
    tables.memory_affinities.try_push(affinity).map_err(|_| Fault::NoRoom { offset })
}

/// The number of a proximity domain.
fn node(domain: u32, offset: u32, tables: &mut Tables) -> Result<u8, Fault> {
    let known = tables.proximity_domains.iter().position(|known| *known == domain);
    let node = match known {
        Some(node) => node,
        None => {
            tables.proximity_domains.try_push(domain).map_err(|_| Fault::NoRoom { offset })?;
            tables.proximity_domains.len() - 1
        }
    };
    Ok(node as u8)
}

#[cfg(test)]
#[path = "srat_tests.rs"]
mod tests;
