// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware's descriptions of IOMMUs, and bridges that state anything.

use firmware::{Tables, Unreadable};
use iommu::Description;
use pci::{Bdf, ConfigSpace};
use units::{PAGE_BYTES, PHYSICAL_LIMIT};

use crate::input::Input;

/// Where the table is.
const TABLE: u64 = 0x7ffe_0000;
/// Most configuration reads that a table may cost.
const MOST_READS: u32 = 2 * 4096;
/// Types of AMD's structures, and of Intel's; the last of each is unknown.
const AMD: [u8; 7] = [0x10, 0x11, 0x40, 0x20, 0x21, 0x22, 0x41];
const INTEL: [u8; 7] = [0, 0, 1, 1, 2, 5, 7];

/// Memory that is a table.
struct Memory(Vec<u8>);

impl firmware::PhysicalMemory for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let start = address.checked_sub(TABLE).and_then(|start| usize::try_from(start).ok()).ok_or(Unreadable)?;
        let end = start.checked_add(into.len()).ok_or(Unreadable)?;
        into.copy_from_slice(self.0.get(start..end).ok_or(Unreadable)?);
        Ok(())
    }
}

/// Functions that are mostly bridges to a later bus.
struct UntrustedSpace<'a> {
    input: Input<'a>,
    reads: u32,
}

impl ConfigSpace for UntrustedSpace<'_> {
    fn read(&mut self, place: Bdf, register: u16) -> u32 {
        self.reads += 1;
        match (self.input.u8() % 8, register) {
            (0, _) => self.input.u32(),
            (1, _) => u32::MAX,
            (_, 0x0c) => 0x01_0000,
            (step, _) => {
                let secondary = place.bus.saturating_add(step - 1);
                u32::from_le_bytes([place.bus, secondary, secondary.saturating_add(self.input.u8() & 7), 0])
            }
        }
    }

    fn now(&mut self) -> u64 {
        0
    }

    fn pause(&mut self) {}
}

/// A table of either vendor with a good header: any bytes in it, or structures of the right lengths.
pub fn iommu_tables(data: &[u8]) {
    let mut input = Input(data);
    let (is_amd, is_framed) = (input.bool(), input.bool());
    let mut body = input.take(12).to_vec();
    body.resize(12, 0);
    match is_framed {
        true => put_structures(&mut body, &mut input, is_amd),
        false => body.extend_from_slice(input.0),
    }
    let mut tables = Box::new(Tables::new());
    let place = if is_amd { &mut tables.ivrs } else { &mut tables.dmar };
    *place = Some(TABLE);
    let memory = Memory(table(if is_amd { b"IVRS" } else { b"DMAR" }, &body));
    let mut space = UntrustedSpace { input: Input(data), reads: 0 };
    let mut description = Box::new(Description::new());
    iommu::description::read(&memory, &tables, &mut space, &mut description).expect("the header is good");
    assert!(space.reads <= MOST_READS, "a table costs a bounded number of reads");
    description.check_reserved(|range| range.start().0 & 1 << 20 != 0);
    check(&description);
}

fn put_structures(body: &mut Vec<u8>, input: &mut Input<'_>, is_amd: bool) {
    while !input.is_empty() {
        // AMD's types have one byte and flags, Intel's two.
        let head = if is_amd { [input.choose(&AMD), input.u8()] } else { [input.choose(&INTEL), 0] };
        let content = input.string();
        body.extend_from_slice(&head);
        body.extend_from_slice(&(4 + content.len() as u16).to_le_bytes());
        body.extend_from_slice(content);
    }
}

/// The table with its length and checksum.
fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[..4].copy_from_slice(signature);
    bytes[4..8].copy_from_slice(&(36 + body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes[9] = bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)).wrapping_neg();
    bytes
}

/// The invariants that hold, whatever firmware wrote.
fn check(description: &Description) {
    for (index, unit) in description.units.iter().enumerate() {
        let range = unit.register_range();
        assert!(range.start().0 != 0 && range.end().0 <= PHYSICAL_LIMIT && range.is_aligned(PAGE_BYTES));
        let others = &description.units[..index];
        assert!(others.iter().all(|other| other.register_range().intersection(range).is_none()), "registers are apart");
        for reserved in description.reserved.iter().filter(|reserved| reserved.defect.is_none()) {
            assert!(reserved.range.intersection(range).is_none(), "no device is given registers");
        }
    }
    for reserved in description.reserved.iter().filter(|reserved| reserved.defect.is_none()) {
        assert!(!reserved.range.is_empty() && reserved.range.is_aligned(PAGE_BYTES));
        assert!(reserved.range.end().0 <= PHYSICAL_LIMIT && reserved.first <= reserved.last);
    }
    let edges = description.scopes.iter().flat_map(|scope| [scope.first, scope.last, scope.alias.unwrap_or(0)]);
    for place in edges.map(|requester| Bdf::of_requester(0, requester)) {
        let unit = description.unit_of(place).map(|unit| &description.units[unit]);
        assert!(unit.is_none_or(|unit| unit.segment == place.segment), "a function's unit is in its segment");
        assert_eq!(description.alias_of(place).segment, place.segment);
        let _ = (description.settings_of(place), description.forbids_ats(place));
        assert!(description.reserved_for(place).all(|reserved| reserved.segment == place.segment));
    }
    description.problems.iter().for_each(|problem| drop(problem.to_string()));
}
