// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of a physical PCI function and of the host around it, which panics where a guest reaches what it must not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use ::pci::Bdf;

use crate::addr::AccessSize;
use crate::devices::pci::Windows;
use crate::devices::pci::assigned::{HostIdentity, Interrupts, LINE, Physical, Piece, Route, VirtualFunctions};
use crate::platform::layout;
use crate::platform::loader::memory_map;

mod access;

const PAGE: u64 = 4096;
const COMMAND: u16 = 4;
/// Bits of the command register that may change once a guest has the function: bus mastering and INTx disable.
const GUESTS: u32 = 1 << 2 | 1 << 10;

/// A guest's address space: the ranges that are mapped beside its memory.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct FakeAddressSpace {
    pub memory_bytes: u64,
    pub pieces: Vec<(u32, Piece)>,
}

/// A function with ranges, interrupts, and registers that count their reads.
///
/// | range | contents | emulated in it |
/// |---|---|---|
/// | 0 | 64-bit memory, 16 KiB | MSI-X table of 40 vectors at 0x2000, pending bits at 0x3000 |
/// | 2 | 32-bit memory, 8 KiB | |
/// | 3 | 32-bit memory, 256 bytes | |
/// | 4 | 32 ports | |
#[derive(Debug)]
#[allow(missing_docs)]
pub struct FakePhysical {
    pub config: [u8; 256],
    /// Bits of the base address registers that can be written.
    pub masks: [u32; 6],
    pub space: Arc<Mutex<FakeAddressSpace>>,
    pub number: u32,
    /// A guest has it: from now on only two bits of the command register may be written.
    pub is_sealed: bool,
    pub is_gone: bool,
    /// After so many accesses to its configuration registers it is gone.
    pub vanishes_after: u32,
    pub refuses_reset: bool,
    pub refuses_maps: bool,
    pub interrupts: Interrupts,
    pub opened: Vec<u16>,
    /// As they were adopted.
    pub routes: BTreeMap<u16, Route>,
    pub unmasked: u32,
    pub resets: u32,
    /// As many virtual functions as the guest has last asked for, as far as they are known.
    pub virtual_wanted: u8,
    pub virtual_functions: VirtualFunctions,
    /// Requests to the host, and writes to configuration registers.
    pub requests: u32,
    /// Accesses to configuration registers.
    pub accesses: u32,
    pub registers: BTreeMap<(u8, u64), u64>,
    pub reads: u64,
}

impl FakeAddressSpace {
    /// That of a guest with so much memory.
    pub fn new(memory_bytes: u64) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { memory_bytes, pieces: Vec::new() }))
    }

    /// The piece at an address.
    pub fn at(&self, gpa: u64) -> Option<(u32, Piece)> {
        self.pieces.iter().copied().find(|(_, piece)| gpa.wrapping_sub(piece.gpa.0) < piece.bytes)
    }

    fn add(&mut self, number: u32, piece: Piece) {
        let (start, end) = (piece.gpa.0, piece.gpa.0.checked_add(piece.bytes).expect("inside of the address space"));
        let is_pages = [piece.gpa.0, piece.bytes, piece.offset].iter().all(|value| value.is_multiple_of(PAGE));
        assert!(is_pages && piece.bytes > 0, "whole pages: {piece:?}");
        let memory = memory_map(self.memory_bytes);
        let memory = memory.iter().map(|entry| (entry.start.0, entry.start.0 + entry.bytes));
        let fixed = [(layout::IOAPIC.0, PAGE), (layout::LOCAL_APIC.0, 1 << 20), (layout::ECAM.0, layout::ECAM_BYTES)];
        let fixed = fixed.map(|(start, bytes)| (start, start + bytes));
        let mapped = self.pieces.iter().map(|(_, other)| (other.gpa.0, other.gpa.0 + other.bytes));
        let mut taken = memory.chain(fixed).chain(mapped);
        assert!(taken.all(|(from, to)| end <= from || to <= start), "nothing else is there: {piece:?}");
        self.pieces.push((number, piece));
    }

    fn remove(&mut self, number: u32, piece: Piece) {
        let at = self.pieces.iter().position(|mapped| *mapped == (number, piece)).expect("it was mapped");
        self.pieces.remove(at);
    }
}

impl FakePhysical {
    /// Vectors of MSI-X.
    pub const VECTORS: u16 = 40;
    /// Where the MSI-X table is in range 0.
    pub const TABLE: u64 = 0x2000;
    /// Where the pending bits are in range 0.
    pub const PENDING: u64 = 0x3000;
    /// Where power management, MSI, PCI Express, MSI-X and a vendor's own capability are.
    pub const CAPABILITIES: [u8; 5] = [0x40, 0x50, 0x70, 0xb0, 0xc0];

    /// The function that the table above describes.
    pub fn new(number: u32, space: &Arc<Mutex<FakeAddressSpace>>) -> Self {
        let mut physical = Self {
            config: [0; 256],
            masks: [0xffff_c000, u32::MAX, 0xffff_e000, 0xffff_ff00, 0xffff_ffe0, 0],
            space: space.clone(),
            number,
            is_sealed: false,
            is_gone: false,
            vanishes_after: u32::MAX,
            refuses_reset: false,
            refuses_maps: false,
            interrupts: Interrupts::Off,
            opened: Vec::new(),
            routes: BTreeMap::new(),
            unmasked: 0,
            resets: 0,
            virtual_wanted: 0,
            virtual_functions: VirtualFunctions { device: 0x10ca, sizes: [14, 0, 0, 12, 0, 0] },
            requests: 0,
            accesses: 0,
            registers: BTreeMap::new(),
            reads: 0,
        };
        let header = [(0x00, 0xabcd_1234), (0x04, 0x0010_0007), (0x08, 0x0108_0203), (0x2c, 0x5678_9abc)];
        let ranges = [(0x10, 0x8000_4004), (0x14, 0x38), (0x18, 0xfe00_2008), (0x1c, 0xfe00_0100), (0x20, 0xc0a1)];
        let lists = [(0x30, 0xfe80_0001), (0x34, 0x40), (0x3c, 0x0100), (0x40, 0xc803_5001), (0x50, 0x0184_7005)];
        let more = [(0x70, 0x0002_b010), (0x74, 0x1000_8001), (0xb0, 0x0027_c011), (0xb4, 0x2000), (0xb8, 0x3000)];
        for (register, value) in header.into_iter().chain(ranges).chain(lists).chain(more).chain([(0xc0, 0x0010_0009)])
        {
            physical.set(register, value);
        }
        physical
    }

    /// Sets a configuration register.
    pub fn set(&mut self, register: u16, value: u32) {
        self.config[usize::from(register)..][..4].copy_from_slice(&value.to_le_bytes());
    }

    /// Reads a configuration register as it is.
    pub fn get(&self, register: u16) -> u32 {
        let bytes = self.config[usize::from(register)..].first_chunk::<4>().expect("inside");
        u32::from_le_bytes(*bytes)
    }

    /// The hardware after a reset, as the host has placed it again.
    pub fn reset_is_over(&mut self) {
        self.set(COMMAND, 0x0010_0003);
        self.registers.clear();
    }

    /// Panics unless everything that is mapped of it lies in these windows.
    pub fn check_mapped_in(&self, windows: &Windows) {
        let space = self.space.lock().unwrap();
        for (_, piece) in space.pieces.iter().filter(|(number, _)| *number == self.number) {
            let window = windows[usize::from(piece.bar)].expect("what is mapped is decoded");
            assert_eq!(piece.gpa.0 - piece.offset, window.first);
            assert!(piece.gpa.0 + piece.bytes - 1 <= window.last);
        }
    }

    fn range_bytes(&self, bar: u8) -> u64 {
        [0x4000, 0, 0x2000, 0x100, 0x20, 0][usize::from(bar)]
    }

    fn check(&self, bar: u8, offset: u64, size: AccessSize) {
        let bytes = size.bytes() as u64;
        assert!(offset.is_multiple_of(bytes) && offset + bytes <= self.range_bytes(bar), "{bar} {offset:#x} {size:?}");
        let table = (Self::TABLE, Self::TABLE + 16 * u64::from(Self::VECTORS));
        let emulated = [table, (Self::PENDING, Self::PENDING + 8)];
        let is_apart = |(from, to): &(u64, u64)| offset + bytes <= *from || *to <= offset;
        assert!(bar != 0 || emulated.iter().all(is_apart), "the hardware's MSI-X table is the host's: {offset:#x}");
    }
}
