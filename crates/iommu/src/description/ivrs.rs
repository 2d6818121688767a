// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD's table: I/O virtualization reporting structure (48882 rev 3.10, section 5.2).
//!
//! Firmware describes a unit up to three times, for hosts of three ages: the IVHD of the highest type counts, the
//! others are read only to compare the registers' address.

use arrayvec::ArrayVec;
use firmware::table::Table;
use pci::Bdf;
use units::{KIB, PhysAddr};

use super::block::{Block, Blocks};
use super::contents::{Description, MAX_UNITS};
use super::device;
use super::problem::TableFault;
use super::reserved::{self, Reserved};
use super::unit::{Kind, LinkFlags, Settings, UnitDescription};

/// Offset of the first structure.
pub const MINIMUM_BYTES: u32 = 48;

/// Virtualization definitions by type: a unit.
const IVHD_10: u8 = 0x10;
const IVHD_11: u8 = 0x11;
const IVHD_40: u8 = 0x40;
/// Memory of all functions, of one, of a range.
const IVMD_ALL: u8 = 0x20;
const IVMD_ONE: u8 = 0x21;
const IVMD_RANGE: u8 = 0x22;
/// Registers of a unit, without and with performance counters (section 3.4).
const REGISTER_BYTES: u64 = 16 * KIB;
const COUNTING_REGISTER_BYTES: u64 = 512 * KIB;
/// In the extended feature register: there are performance counters (PCSup).
const HAS_COUNTERS: u64 = 1 << 9;
/// In type 10h's feature field: PNCounters, which is 0 without them.
const COUNTERS: u32 = 0xf << 13;

/// Takes over what the table states; `description` is empty.
pub fn read(table: &Table<'_>, description: &mut Description) {
    description.kind = Some(Kind::Amd);
    // Section 5.2.1, IVinfo: physical address size in bits 8-14, DMA remapping requested in bit 1.
    let information = table.u32(36).unwrap_or(0);
    description.address_bits = (information >> 8 & 0x7f) as u8;
    description.wants_protection = information & 1 << 1 != 0;
    description.remaps_interrupts = true;
    let chosen = choose(*table);
    for block in Blocks::new(*table, MINIMUM_BYTES) {
        let (offset, taken) = match block {
            Ok(block) => (block.offset, take(&block, &chosen, description)),
            Err(offset) => (offset, Err(TableFault::Truncated)),
        };
        if let Err(fault) = taken {
            description.report(offset, fault);
        }
    }
}

/// The IVHD that counts for a unit.
struct Chosen {
    segment: u16,
    /// The unit's own requester identifier, by which IVHDs of one unit are recognised.
    unit: u16,
    kind: u8,
    registers: u64,
    offset: u32,
}

/// Returns the first IVHD of the highest type of each unit, of the first [`MAX_UNITS`] units.
fn choose(table: Table<'_>) -> ArrayVec<Chosen, MAX_UNITS> {
    let mut chosen = ArrayVec::<Chosen, MAX_UNITS>::new();
    for block in Blocks::new(table, MINIMUM_BYTES).map_while(Result::ok) {
        let Some(found) = identify(&block) else { continue };
        match chosen.iter_mut().find(|known| (known.segment, known.unit) == (found.segment, found.unit)) {
            Some(known) if known.kind < found.kind => *known = found,
            Some(_) => {}
            None => _ = chosen.try_push(found),
        }
    }
    chosen
}

/// Returns the unit of an IVHD; `None` for other structures, and for one that is too short for its type.
fn identify(block: &Block<'_>) -> Option<Chosen> {
    let kind = block.head[0];
    let is_whole = block.bytes >= header_bytes(kind)?;
    let (unit, registers, segment) = (block.u16(4)?, block.u64(8)?, block.u16(16)?);
    is_whole.then_some(Chosen { segment, unit, kind, registers, offset: block.offset })
}

/// Returns the offset of the device entries of an IVHD; `None` for other structures.
const fn header_bytes(kind: u8) -> Option<u32> {
    match kind {
        IVHD_10 => Some(24),
        IVHD_11 | IVHD_40 => Some(40),
        _ => None,
    }
}

fn take(block: &Block<'_>, chosen: &[Chosen], description: &mut Description) -> Result<(), TableFault> {
    match block.head[0] {
        IVHD_10 | IVHD_11 | IVHD_40 => {
            let found = identify(block).ok_or(TableFault::Truncated)?;
            let known = chosen.iter().find(|known| (known.segment, known.unit) == (found.segment, found.unit));
            match known.ok_or(TableFault::NoRoom)? {
                known if known.offset == found.offset => take_unit(block, &found, description),
                known if known.kind == found.kind => Err(TableFault::RepeatedUnit),
                known if known.registers != found.registers => {
                    Err(TableFault::ContradictsUnit { address: found.registers })
                }
                _ => Ok(()),
            }
        }
        IVMD_ALL | IVMD_ONE | IVMD_RANGE => take_memory(block, description),
        kind => Err(TableFault::UnknownKind { kind: u16::from(kind) }),
    }
}

/// Sections 5.2.2.1 to 5.2.2.3. Types 11h and 40h have copies of the feature registers, type 10h a part of one.
fn take_unit(block: &Block<'_>, found: &Chosen, description: &mut Description) -> Result<(), TableFault> {
    let truncated = TableFault::Truncated;
    let (capability, attributes) = (block.u16(6).ok_or(truncated)?, block.u32(20).ok_or(truncated)?);
    let has_copies = found.kind != IVHD_10;
    let copy = |at| if has_copies { block.u64(at) } else { None };
    let has_counters =
        copy(24).map_or(!has_copies && attributes & COUNTERS != 0, |features| features & HAS_COUNTERS != 0);
    let unit = UnitDescription {
        segment: found.segment,
        registers: PhysAddr(found.registers),
        register_bytes: if has_counters { COUNTING_REGISTER_BYTES } else { REGISTER_BYTES },
        covers_rest: false,
        rest_settings: Settings::default(),
        function: Some(Bdf::of_requester(found.segment, found.unit)),
        capability,
        link: LinkFlags(block.head[1]),
        attributes,
        extended_features: copy(24),
        extended_features_2: copy(32),
    };
    let place = description.add_unit(unit, REGISTER_BYTES)?;
    device::read(block, header_bytes(found.kind).unwrap_or(block.bytes), place, description);
    Ok(())
}

/// Reads reserved memory (section 5.2.3). An exclusion range passes the unit unchecked, for any other flags.
fn take_memory(block: &Block<'_>, description: &mut Description) -> Result<(), TableFault> {
    const UNITY: u8 = 1;
    const READABLE: u8 = 2;
    const WRITABLE: u8 = 4;
    const EXCLUSION: u8 = 8;
    let truncated = TableFault::Truncated;
    let [kind, flags] = block.head;
    let (one, auxiliary) = (block.u16(4).ok_or(truncated)?, block.u16(6).ok_or(truncated)?);
    let (start, bytes) = (block.u64(16).ok_or(truncated)?, block.u64(24).ok_or(truncated)?);
    let (first, last) = match kind {
        IVMD_ALL => (0, u16::MAX),
        IVMD_ONE => (one, one),
        _ => (one, auxiliary),
    };
    if first > last {
        return Err(TableFault::BadFunctions { requester: first });
    }
    let is_exclusion = flags & EXCLUSION != 0;
    let allows = |flag| is_exclusion || flags & UNITY != 0 && flags & flag != 0;
    let (range, defect) = reserved::range(start, start.checked_add(bytes));
    description.add_reserved(Reserved {
        range,
        segment: block.u16(8).ok_or(truncated)?,
        first,
        last,
        is_readable: allows(READABLE),
        is_writable: allows(WRITABLE),
        is_exclusion,
        defect,
        offset: block.offset,
    });
    Ok(())
}

#[cfg(test)]
#[path = "ivrs_tests.rs"]
mod tests;
