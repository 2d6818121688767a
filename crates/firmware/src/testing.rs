// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine's memory with tables in it, built byte by byte.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use crate::{Error, PhysicalMemory, Tables, Unreadable, discover};

/// Address at which [`Machine::with_tables`] puts the root pointer.
pub const RSDP: u64 = 0xf_5320;
/// Address at which it puts the root table; the others follow, a page or more apart.
pub const ROOT: u64 = 0x7ffe_0000;

/// Memory that is there only where something was put.
#[derive(Clone, Default)]
pub struct Machine {
    pub pieces: BTreeMap<u64, Vec<u8>>,
}

impl Machine {
    /// A machine with an XSDT, its root pointer in the BIOS area.
    pub fn with_tables(tables: &[Vec<u8>]) -> Self {
        let mut machine = Self::default();
        let addresses: Vec<u64> = tables.iter().map(|table| machine.put_table(table.clone())).collect();
        machine.put_root(&addresses);
        machine
    }

    /// Puts a table behind all others; returns where.
    pub fn put_table(&mut self, table: Vec<u8>) -> u64 {
        let last = self.pieces.range(ROOT..).next_back().map(|(at, bytes)| at + bytes.len() as u64);
        let address = last.unwrap_or(ROOT + 0x1000).max(ROOT + 0x1000).next_multiple_of(0x1000);
        self.pieces.insert(address, table);
        address
    }

    /// Puts the XSDT and the root pointer.
    pub fn put_root(&mut self, addresses: &[u64]) {
        let entries: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        self.pieces.insert(ROOT, table(b"XSDT", &entries));
        self.pieces.insert(RSDP, rsdp(2, 0, ROOT));
    }

    /// Returns the result of [`discover`], by searching.
    pub fn discover(&self) -> Result<Box<Tables>, Error> {
        self.discover_at(None)
    }

    /// Returns the result of [`discover`], given the root pointer.
    pub fn discover_at(&self, rsdp: Option<u64>) -> Result<Box<Tables>, Error> {
        let mut tables = Box::new(Tables::new());
        discover(self, rsdp, &mut tables).map(|()| tables)
    }
}

impl PhysicalMemory for Machine {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let (start, bytes) = self.pieces.range(..=address).next_back().ok_or(Unreadable)?;
        let offset = usize::try_from(address - start).map_err(|_| Unreadable)?;
        let end = offset.checked_add(into.len()).ok_or(Unreadable)?;
        into.copy_from_slice(bytes.get(offset..end).ok_or(Unreadable)?);
        Ok(())
    }
}

/// A root pointer with good checksums.
pub fn rsdp(revision: u8, rsdt: u32, xsdt: u64) -> Vec<u8> {
    let mut bytes = vec![0; if revision < 2 { 20 } else { 36 }];
    bytes[..8].copy_from_slice(b"RSD PTR ");
    bytes[9..15].copy_from_slice(b"BATON ");
    bytes[15] = revision;
    bytes[16..20].copy_from_slice(&rsdt.to_le_bytes());
    bytes[8] = complement(&bytes[..20]);
    if revision >= 2 {
        bytes[20..24].copy_from_slice(&36u32.to_le_bytes());
        bytes[24..32].copy_from_slice(&xsdt.to_le_bytes());
        bytes[32] = complement(&bytes);
    }
    bytes
}

/// A table with a good header around `body`.
pub fn table(signature: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[..4].copy_from_slice(signature);
    bytes[4..8].copy_from_slice(&(36 + body.len() as u32).to_le_bytes());
    bytes[8] = 1;
    bytes[10..16].copy_from_slice(b"BATON ");
    bytes.extend_from_slice(body);
    resum(bytes)
}

/// The table with its checksum corrected.
pub fn resum(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[9] = 0;
    bytes[9] = complement(&bytes);
    bytes
}

fn complement(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)).wrapping_neg()
}

/// A MADT with the given entries.
pub fn madt(flags: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = 0xfee0_0000u32.to_le_bytes().to_vec();
    body.extend(flags.to_le_bytes());
    body.extend(entries.concat());
    let mut table = table(b"APIC", &body);
    table[8] = 5;
    resum(table)
}

/// A CPU by its xAPIC identifier.
pub fn local_apic(apic_id: u8, flags: u32) -> Vec<u8> {
    [&[0, 8, apic_id, apic_id][..], &flags.to_le_bytes()].concat()
}

/// A CPU by its x2APIC identifier.
pub fn x2apic(apic_id: u32, flags: u32) -> Vec<u8> {
    [&[9, 16, 0, 0][..], &apic_id.to_le_bytes(), &flags.to_le_bytes(), &[0; 4]].concat()
}

/// An I/O APIC.
pub fn io_apic(id: u8, address: u32, gsi_base: u32) -> Vec<u8> {
    [&[1, 12, id, 0][..], &address.to_le_bytes(), &gsi_base.to_le_bytes()].concat()
}

/// An interrupt override.
pub fn wiring(bus: u8, irq: u8, gsi: u32, flags: u16) -> Vec<u8> {
    [&[2, 10, bus, irq][..], &gsi.to_le_bytes(), &flags.to_le_bytes()].concat()
}

/// A generic address in the 12 bytes tables use.
pub fn generic(space: u8, address: u64) -> Vec<u8> {
    [&[space, 32, 0, 3][..], &address.to_le_bytes()].concat()
}

/// A FADT of `bytes` bytes with `fields` put at their offsets.
pub fn fadt(bytes: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut table = table(b"FACP", &vec![0; bytes - 36]);
    for (offset, field) in fields {
        table[*offset..offset + field.len()].copy_from_slice(field);
    }
    resum(table)
}

/// The HPET's table.
pub fn hpet(space: u8, address: u64) -> Vec<u8> {
    table(b"HPET", &[&[0; 4][..], &generic(space, address), &[0; 4]].concat())
}

/// A MCFG with the given entries: base, segment, first and last bus.
pub fn mcfg(entries: &[(u64, u16, u8, u8)]) -> Vec<u8> {
    let entry = |&(base, segment, start, end): &(u64, u16, u8, u8)| {
        [&base.to_le_bytes()[..], &segment.to_le_bytes(), &[start, end, 0, 0, 0, 0]].concat()
    };
    let entries: Vec<u8> = entries.iter().flat_map(entry).collect();
    table(b"MCFG", &[&[0; 8][..], &entries].concat())
}

/// A SRAT with the given entries.
pub fn srat(entries: &[Vec<u8>]) -> Vec<u8> {
    table(b"SRAT", &[&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &entries.concat()].concat())
}

/// A CPU on a node, by its xAPIC identifier.
pub fn srat_local_apic(apic_id: u8, domain: u32, flags: u32) -> Vec<u8> {
    let [d0, rest @ ..] = domain.to_le_bytes();
    [&[0, 16, d0, apic_id][..], &flags.to_le_bytes(), &[0], &rest, &[0; 4]].concat()
}

/// A CPU on a node, by its x2APIC identifier.
pub fn srat_x2apic(apic_id: u32, domain: u32, flags: u32) -> Vec<u8> {
    let words = [domain, apic_id, flags, 0, 0].map(u32::to_le_bytes);
    [&[2, 24, 0, 0][..], &words.concat()].concat()
}

/// Memory on a node.
pub fn srat_memory(domain: u32, base: u64, bytes: u64, flags: u32) -> Vec<u8> {
    let mut entry = [&[1, 40][..], &domain.to_le_bytes(), &[0; 2], &base.to_le_bytes(), &bytes.to_le_bytes()].concat();
    entry.extend([&[0; 4][..], &flags.to_le_bytes(), &[0; 8]].concat());
    entry
}

/// A DSDT with a usual `\_S5_` in its AML.
pub fn dsdt() -> Vec<u8> {
    table(b"DSDT", b"\x10\x40\x08\\_S5_\x12\x06\x04\x0a\x05\x0a\x06\x00\x00")
}

/// The tables of an ordinary PC, complete and right.
pub fn ordinary() -> Machine {
    let mut machine = Machine::default();
    let dsdt = machine.put_table(dsdt());
    let tables = [
        fadt(
            244,
            &[
                (40, &(dsdt as u32).to_le_bytes()),
                (48, &0xb2u32.to_le_bytes()),
                (52, &[2]),
                (64, &0x604u32.to_le_bytes()),
                (76, &0x608u32.to_le_bytes()),
                (89, &[2]),
                (91, &[4]),
                (112, &(1u32 << 10).to_le_bytes()),
                (116, &generic(1, 0xcf9)),
                (128, &[0x0f]),
                (140, &dsdt.to_le_bytes()),
                (172, &generic(1, 0x604)),
                (208, &generic(1, 0x608)),
            ],
        ),
        madt(
            1,
            &[
                local_apic(0, 1),
                local_apic(1, 1),
                io_apic(0, 0xfec0_0000, 0),
                wiring(0, 0, 2, 0),
                wiring(0, 9, 9, 0xf),
                vec![4, 6, 0xff, 0, 0, 1],
            ],
        ),
        hpet(0, 0xfed0_0000),
        mcfg(&[(0xb000_0000, 0, 0, 255)]),
    ];
    let addresses: Vec<u64> = tables.into_iter().map(|table| machine.put_table(table)).collect();
    machine.put_root(&addresses);
    machine
}
