// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiple APIC description table: CPUs and interrupt controllers (ACPI 6.5, section 5.2.12).
//!
//! After two fixed fields come entries, each with its kind and its length in the first two bytes. Kinds that are not
//! needed are stepped over by their length, so an entry without one ends the walk.

use crate::table::{Signature, Table};
use crate::{Cpu, Fault, IoApic, Override, Tables};

/// Offset of the entries in bytes.
pub const MINIMUM_BYTES: u32 = 44;
/// From this revision on (ACPI 6.3) a flag states that a CPU can be enabled later; it was reserved before.
const ONLINE_CAPABLE_SINCE: u8 = 5;
/// Bytes of the largest entry that is read.
const ENTRY_BYTES: usize = 16;

/// Adopts the table's content.
pub fn read(table: &Table<'_>, tables: &mut Tables) {
    tables.local_apic_address = table.u32(36).map_or(tables.local_apic_address, u64::from);
    tables.has_8259 = table.u32(40).is_none_or(|flags| flags & 1 != 0);
    let mut offset = MINIMUM_BYTES;
    while offset < table.bytes() {
        match read_entry(table, offset, tables) {
            Ok(bytes) => offset += u32::from(bytes),
            Err(fault) => return tables.warn(Signature::MADT, fault),
        }
    }
}

/// Takes over one entry; returns its length. An entry with an impossible length is an error: the next one cannot be
/// found.
fn read_entry(table: &Table<'_>, offset: u32, tables: &mut Tables) -> Result<u8, Fault> {
    let truncated = Fault::TruncatedEntry { offset };
    let [kind, bytes] = table.array(offset).ok_or(truncated)?;
    if bytes < 2 || table.bytes() - offset < u32::from(bytes) {
        return Err(truncated);
    }
    let mut buffer = [0; ENTRY_BYTES];
    let entry = table.read_some(offset, &mut buffer[..ENTRY_BYTES.min(usize::from(bytes))])?;
    let known_flags = if table.revision() < ONLINE_CAPABLE_SINCE { 0b01 } else { 0b11 };
    if let Err(fault) = take(kind, entry, known_flags, offset, tables) {
        tables.warn(Signature::MADT, fault);
    }
    Ok(bytes)
}

fn take(kind: u8, entry: &[u8], known_flags: u32, offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let truncated = Fault::TruncatedEntry { offset };
    match kind {
        0 => take_local_apic(entry.first_chunk().ok_or(truncated)?, known_flags, offset, tables),
        1 => take_io_apic(entry.first_chunk().ok_or(truncated)?, offset, tables),
        2 => take_override(entry.first_chunk().ok_or(truncated)?, offset, tables),
        5 => take_local_apic_address(entry.first_chunk().ok_or(truncated)?, tables),
        9 => take_x2apic(entry.first_chunk().ok_or(truncated)?, known_flags, offset, tables),
        _ => Ok(()),
    }
}

/// Section 5.2.12.2.
fn take_local_apic(entry: &[u8; 8], known_flags: u32, offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let [_, _, _uid, apic_id, flags @ ..] = *entry;
    let flags = u32::from_le_bytes(flags) & known_flags;
    take_cpu(u32::from(apic_id), u32::from(u8::MAX), flags, offset, tables)
}

/// Section 5.2.12.12.
fn take_x2apic(entry: &[u8; 16], known_flags: u32, offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let [_, _, _, _, i0, i1, i2, i3, f0, f1, f2, f3, ..] = *entry;
    let (apic_id, flags) = (u32::from_le_bytes([i0, i1, i2, i3]), u32::from_le_bytes([f0, f1, f2, f3]));
    take_cpu(apic_id, u32::MAX, flags & known_flags, offset, tables)
}

/// A CPU neither enabled nor online capable is a placeholder, to be ignored: its identifier may well be
/// another's.
fn take_cpu(apic_id: u32, broadcast: u32, flags: u32, offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let enabled = flags & 1 != 0;
    let online_capable = !enabled && flags & 2 != 0;
    if !enabled && !online_capable {
        return Ok(());
    }
    if apic_id == broadcast {
        return Err(Fault::BroadcastApicId { apic_id });
    }
    if tables.cpus.iter().any(|known| known.apic_id == apic_id) {
        return Err(Fault::DuplicateApicId { apic_id });
    }
    let cpu = Cpu { apic_id, enabled, online_capable, node: 0 };
    tables.cpus.try_push(cpu).map_err(|_| Fault::NoRoom { offset })
}

/// Section 5.2.12.3.
fn take_io_apic(entry: &[u8; 12], offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let [_, _, id, _, a0, a1, a2, a3, base @ ..] = *entry;
    let address = u64::from(u32::from_le_bytes([a0, a1, a2, a3]));
    let gsi_base = u32::from_le_bytes(base);
    let is_taken = tables.io_apics.iter().any(|known| known.address == address || known.gsi_base == gsi_base);
    if address == 0 || is_taken {
        return Err(Fault::BadEntry { offset });
    }
    tables.io_apics.try_push(IoApic { id, address, gsi_base }).map_err(|_| Fault::NoRoom { offset })
}

/// Section 5.2.12.5. "Conforms to the ISA bus" (0) means active high and edge triggered; 2 is reserved.
fn take_override(entry: &[u8; 10], offset: u32, tables: &mut Tables) -> Result<(), Fault> {
    let [_, _, bus, irq, g0, g1, g2, g3, flags, _] = *entry;
    let (polarity, trigger) = (flags & 3, flags >> 2 & 3);
    let is_known = tables.overrides.iter().any(|known| known.irq == irq);
    if bus != 0 || irq > 15 || polarity == 2 || trigger == 2 || is_known {
        return Err(Fault::BadEntry { offset });
    }
    let gsi = u32::from_le_bytes([g0, g1, g2, g3]);
    let wiring = Override { irq, gsi, is_level: trigger == 3, is_active_low: polarity == 3 };
    tables.overrides.try_push(wiring).map_err(|_| Fault::NoRoom { offset })
}

/// Section 5.2.12.8.
fn take_local_apic_address(entry: &[u8; 12], tables: &mut Tables) -> Result<(), Fault> {
    let [_, _, _, _, address @ ..] = *entry;
    tables.local_apic_address = u64::from_le_bytes(address);
    Ok(())
}

#[cfg(test)]
#[path = "madt_tests.rs"]
mod tests;
