// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables built byte by byte, and machines with bridges.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use firmware::table::Table;
use firmware::{PhysicalMemory, Signature, Unreadable};
use pci::{Bdf, ConfigSpace};
use units::PhysAddr;

use super::{Description, Kind, LinkFlags, Settings, TableFault, UnitDescription, dmar, ivrs};

/// First address of [`Memory`].
pub const BASE: u64 = 0x7ffe_0000;
/// The registers of AMD's only unit.
pub const REGISTERS: u64 = 0xfed8_0000;
/// Offset of the entries of [`with_entries`].
pub const ENTRIES: u32 = 48 + 40;

/// Returns a function of segment 0.
pub fn place(requester: u16) -> Bdf {
    Bdf::of_requester(0, requester)
}

/// Returns the description of one unit of AMD's with these entries.
pub fn with_entries(entries: &[Vec<u8>]) -> Box<Description> {
    read_ivrs(ivrs(&[ivhd(0x11, 2, REGISTERS, entries)]))
}

/// Returns a description with one unit that has `register_bytes` bytes of registers.
pub fn one_unit(kind: Kind, register_bytes: u64, covers_rest: bool) -> Description {
    let mut description = Description::new();
    description.kind = Some(kind);
    description.units.push(UnitDescription {
        segment: 0,
        registers: PhysAddr(REGISTERS),
        register_bytes,
        covers_rest,
        rest_settings: Settings(0),
        function: None,
        capability: 0,
        link: LinkFlags(0),
        attributes: 0,
        extended_features: None,
        extended_features_2: None,
    });
    description
}

/// Memory with one table.
pub struct Memory(pub Vec<u8>);

impl PhysicalMemory for Memory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let start = address.checked_sub(BASE).and_then(|start| usize::try_from(start).ok()).ok_or(Unreadable)?;
        let end = start.checked_add(into.len()).ok_or(Unreadable)?;
        into.copy_from_slice(self.0.get(start..end).ok_or(Unreadable)?);
        Ok(())
    }
}

/// Bridges with their secondary and subordinate buses; nothing else answers.
#[derive(Default)]
pub struct Bridges {
    pub buses: BTreeMap<Bdf, (u8, u8)>,
    pub reads: u32,
}

impl Bridges {
    /// Bridges of segment 0 by their requester identifiers.
    pub fn new(bridges: &[(u16, u8, u8)]) -> Self {
        let buses = bridges.iter().map(|&(requester, first, last)| (Bdf::of_requester(0, requester), (first, last)));
        Self { buses: buses.collect(), reads: 0 }
    }
}

impl ConfigSpace for Bridges {
    fn read(&mut self, place: Bdf, register: u16) -> u32 {
        self.reads += 1;
        match (self.buses.get(&place), register) {
            (Some(_), 0x0c) => 0x81_0000,
            (Some(&(first, last)), 0x18) => u32::from_le_bytes([place.bus, first, last, 0]),
            (Some(_), _) => panic!("register {register:#x} of a bridge does not have its buses"),
            (None, _) => u32::MAX,
        }
    }

    fn now(&mut self) -> u64 {
        0
    }

    fn pause(&mut self) {}
}

/// Reads AMD's table.
pub fn read_ivrs(table: Vec<u8>) -> Box<Description> {
    let (memory, mut description) = (Memory(table), Box::new(Description::new()));
    let table = Table::open(&memory, BASE, Signature::IVRS, ivrs::MINIMUM_BYTES).unwrap();
    ivrs::read(&table, &mut description);
    description
}

/// Reads Intel's table, on a machine with these bridges.
pub fn read_dmar(table: Vec<u8>, bridges: &mut Bridges) -> Box<Description> {
    let (memory, mut description) = (Memory(table), Box::new(Description::new()));
    let table = Table::open(&memory, BASE, Signature::DMAR, dmar::MINIMUM_BYTES).unwrap();
    dmar::read(&table, bridges, &mut description);
    description
}

/// Returns the problems with where they are.
pub fn faults(description: &Description) -> Vec<(u32, TableFault)> {
    description.problems.iter().map(|problem| (problem.offset, problem.fault)).collect()
}

/// Returns the bytes of a dump.
pub fn hexadecimal(text: &str) -> Vec<u8> {
    text.split_ascii_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Returns a table with a good header: 12 bytes of its own, then structures.
pub fn table(signature: &[u8; 4], own: [u8; 12], structures: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[..4].copy_from_slice(signature);
    bytes[8] = 1;
    bytes.extend_from_slice(&own);
    bytes.extend(structures.concat());
    seal(bytes)
}

/// Returns the table with its length and checksum made good again.
pub fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[9] = 0;
    bytes[9] = bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)).wrapping_neg();
    bytes
}

/// Returns AMD's table: 40 bits of physical address.
pub fn ivrs(structures: &[Vec<u8>]) -> Vec<u8> {
    table(b"IVRS", [1, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], structures)
}

/// Returns a unit of segment 0.
pub fn ivhd(kind: u8, unit: u16, registers: u64, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut block = vec![kind, 0xb0, 0, 0];
    block.extend(unit.to_le_bytes());
    block.extend(0x40u16.to_le_bytes());
    block.extend(registers.to_le_bytes());
    block.extend([0; 8]);
    if kind != 0x10 {
        block.extend(0x29d7u64.to_le_bytes());
        block.extend(0x11u64.to_le_bytes());
    }
    block.extend(entries.concat());
    with_length(block)
}

/// Returns the entry for memory of functions.
pub fn ivmd(kind: u8, flags: u8, functions: (u16, u16), segment: u16, start: u64, bytes: u64) -> Vec<u8> {
    let mut block = vec![kind, flags, 0, 0];
    block.extend(functions.0.to_le_bytes());
    block.extend(functions.1.to_le_bytes());
    block.extend(segment.to_le_bytes());
    block.extend([0; 6]);
    block.extend(start.to_le_bytes());
    block.extend(bytes.to_le_bytes());
    with_length(block)
}

/// Returns a device entry of four bytes.
pub fn entry(kind: u8, function: u16, settings: u8) -> Vec<u8> {
    let [low, high] = function.to_le_bytes();
    vec![kind, low, high, settings]
}

/// Returns a device entry of eight bytes with an alias.
pub fn alias(kind: u8, function: u16, settings: u8, alias: u16) -> Vec<u8> {
    let [low, high] = alias.to_le_bytes();
    [entry(kind, function, settings), vec![0, low, high, 0]].concat()
}

/// Returns an I/O APIC (variety 1) or event timer (2).
pub fn special(id: u8, requester: u16, settings: u8, variety: u8) -> Vec<u8> {
    let [low, high] = requester.to_le_bytes();
    vec![0x48, 0, 0, settings, id, low, high, variety]
}

/// Returns a device that only ACPI's namespace has.
pub fn named(function: u16, settings: u8, unique: &[u8]) -> Vec<u8> {
    [entry(0xf0, function, settings), b"AMDI0020PNP0501\0".to_vec(), vec![2, unique.len() as u8], unique.to_vec()]
        .concat()
}

/// Returns Intel's table: 39 bits of address, interrupts are remapped.
pub fn dmar(structures: &[Vec<u8>]) -> Vec<u8> {
    table(b"DMAR", [38, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], structures)
}

/// Returns a unit.
pub fn drhd(flags: u8, segment: u16, registers: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
    let mut block = vec![0, 0, 0, 0, flags, 0];
    block.extend(segment.to_le_bytes());
    block.extend(registers.to_le_bytes());
    block.extend(scopes.concat());
    with_length(block)
}

/// Returns the entry for reserved memory of segment 0.
pub fn rmrr(base: u64, limit: u64, scopes: &[Vec<u8>]) -> Vec<u8> {
    let mut block = vec![1, 0, 0, 0, 0, 0, 0, 0];
    block.extend(base.to_le_bytes());
    block.extend(limit.to_le_bytes());
    block.extend(scopes.concat());
    with_length(block)
}

/// Returns a device scope.
pub fn scope(kind: u8, id: u8, bus: u8, path: &[u8]) -> Vec<u8> {
    [&[kind, 6 + path.len() as u8, 0, 0, id, bus][..], path].concat()
}

/// Returns the structure with its length in its third and fourth byte.
pub fn with_length(mut block: Vec<u8>) -> Vec<u8> {
    let length = block.len() as u16;
    block[2..4].copy_from_slice(&length.to_le_bytes());
    block
}
