// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel's table: DMA remapping reporting (VT-d rev 4.1, chapter 8).
//!
//! Units (DRHD) and reserved memory (RMRR) are taken over. Which functions use ATS (ATSR, SATC), which node a unit is
//! near (RHSA), the names of devices in ACPI's namespace (ANDD) and properties of integrated devices (SIDP) are not
//! needed.

use firmware::table::Table;
use pci::ConfigSpace;
use units::{PAGE_BYTES, PhysAddr};

use super::block::{Block, Blocks};
use super::contents::Description;
use super::path::{Named, Resolver, Scopes};
use super::problem::TableFault;
use super::reserved::{self, Reserved};
use super::unit::{Interrupter, InterrupterKind, Kind, LinkFlags, Scope, Settings, UnitDescription};

/// Offset of the first structure.
pub const MINIMUM_BYTES: u32 = 48;

/// A unit, and reserved memory.
const DRHD: u16 = 0;
const RMRR: u16 = 1;
/// The first and last of the types that are known and not needed.
const ATSR: u16 = 2;
const SIDP: u16 = 6;
/// The kinds of scopes: a function; a bridge and all behind it; an I/O APIC; an event timer; a device in ACPI's
/// namespace.
const ENDPOINT: u8 = 1;
const HIERARCHY: u8 = 2;
const IO_APIC: u8 = 3;
const HPET: u8 = 4;
const NAMESPACE: u8 = 5;

/// Takes over what the table states; `description` is empty.
pub fn read(table: &Table<'_>, config: &mut dyn ConfigSpace, description: &mut Description) {
    description.kind = Some(Kind::Intel);
    // Section 8.1: bits of an address, less one; flags.
    let [width, flags] = table.array(36).unwrap_or_default();
    description.address_bits = width.saturating_add(1);
    description.remaps_interrupts = flags & 1 != 0;
    description.refuses_x2apic = flags & 2 != 0;
    description.wants_protection = flags & 4 != 0;
    let mut resolver = Resolver::new(config);
    for block in Blocks::new(*table, MINIMUM_BYTES) {
        let (offset, taken) = match block {
            Ok(block) => (block.offset, take(&block, &mut resolver, description)),
            Err(offset) => (offset, Err(TableFault::Truncated)),
        };
        if let Err(fault) = taken {
            description.report(offset, fault);
        }
    }
}

fn take(block: &Block<'_>, resolver: &mut Resolver<'_>, description: &mut Description) -> Result<(), TableFault> {
    match u16::from_le_bytes(block.head) {
        DRHD => take_unit(block, resolver, description),
        RMRR => take_memory(block, resolver, description),
        ATSR..=SIDP => Ok(()),
        kind => Err(TableFault::UnknownKind { kind }),
    }
}

/// Reads a unit (section 8.3). The size field counts pages by powers of two; before revision 4 of the specification it
/// was reserved.
fn take_unit(block: &Block<'_>, resolver: &mut Resolver<'_>, description: &mut Description) -> Result<(), TableFault> {
    let truncated = TableFault::Truncated;
    let [flags, size] = block.array(4).ok_or(truncated)?;
    let unit = UnitDescription {
        segment: block.u16(6).ok_or(truncated)?,
        registers: PhysAddr(block.u64(8).ok_or(truncated)?),
        register_bytes: PAGE_BYTES << (size & 0xf),
        covers_rest: false,
        rest_settings: Settings::default(),
        function: None,
        capability: 0,
        link: LinkFlags::default(),
        attributes: 0,
        extended_features: None,
        extended_features_2: None,
    };
    let place = description.add_unit(unit, PAGE_BYTES)?;
    if flags & 1 != 0
        && let Err(fault) = description.add_rest(place, Settings::default())
    {
        description.report(block.offset, fault);
    }
    for_each_scope(block, 16, description, |named, description| {
        take_scope(named, place, unit.segment, resolver, description)
    });
    Ok(())
}

/// Functions behind a unit, or what interrupts through it.
fn take_scope(
    named: &Named<'_, '_>,
    unit: u8,
    segment: u16,
    resolver: &mut Resolver<'_>,
    description: &mut Description,
) -> Result<(), TableFault> {
    let interrupter = match named.kind {
        ENDPOINT | HIERARCHY | NAMESPACE => None,
        IO_APIC => Some(InterrupterKind::IoApic),
        HPET => Some(InterrupterKind::Hpet),
        kind => return Err(TableFault::UnknownKind { kind: u16::from(kind) }),
    };
    let functions = resolver.functions(segment, named, named.kind == HIERARCHY)?;
    if let (Some(kind), Some(&(requester, _))) = (interrupter, functions.first()) {
        description.add_interrupter(Interrupter { kind, id: named.id, unit, requester })?;
    }
    for (first, last) in functions {
        description.add_scope(named.offset, Scope { unit, first, last, ..Scope::default() });
    }
    Ok(())
}

/// Reads reserved memory (section 8.4). The limit is the last byte's address.
fn take_memory(
    block: &Block<'_>,
    resolver: &mut Resolver<'_>,
    description: &mut Description,
) -> Result<(), TableFault> {
    let truncated = TableFault::Truncated;
    let segment = block.u16(6).ok_or(truncated)?;
    let (base, limit) = (block.u64(8).ok_or(truncated)?, block.u64(16).ok_or(truncated)?);
    let (range, defect) = reserved::range(base, limit.checked_add(1));
    let (mut is_for_any, offset) = (false, block.offset);
    for_each_scope(block, 24, description, |named, description| {
        is_for_any = true;
        if !matches!(named.kind, ENDPOINT | HIERARCHY) {
            return Err(TableFault::UnknownKind { kind: u16::from(named.kind) });
        }
        for (first, last) in resolver.functions(segment, named, named.kind == HIERARCHY)? {
            let (is_readable, is_writable, is_exclusion) = (true, true, false);
            description.add_reserved(Reserved {
                range,
                segment,
                first,
                last,
                is_readable,
                is_writable,
                is_exclusion,
                defect,
                offset,
            });
        }
        Ok(())
    });
    if is_for_any { Ok(()) } else { Err(TableFault::NoFunctions) }
}

/// Calls `take` with each scope of a structure, from its byte `start` on; reports those that are refused.
fn for_each_scope(
    block: &Block<'_>,
    start: u32,
    description: &mut Description,
    mut take: impl FnMut(&Named<'_, '_>, &mut Description) -> Result<(), TableFault>,
) {
    for named in Scopes::new(block, start) {
        let (offset, taken) = match named {
            Ok(named) => (named.offset, take(&named, description)),
            Err(offset) => (offset, Err(TableFault::Truncated)),
        };
        if let Err(fault) = taken {
            description.report(offset, fault);
        }
    }
}

#[cfg(test)]
#[path = "dmar_tests.rs"]
mod tests;
