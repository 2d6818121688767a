// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit as the specification has it, for tests: registers, walks, caches that keep what was not invalidated.
//! It panics where the specification leaves the result of an access open.

mod hardware;
mod interrupts;
mod memory;
mod queue;
mod registers;
mod walk;

use std::cell::RefCell;
use std::rc::Rc;
use std::vec::Vec;

use paging::TableMemory;
use units::PhysAddr;

use crate::hardware::{Memory, Registers};

pub(crate) use hardware::Features;
pub(super) use hardware::Hardware;
pub(super) use memory::Ram;

/// An access, and what it may lead to: at every moment one of these.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) requester: u16,
    pub(super) address: u64,
    pub(super) may_reach: Vec<Option<u64>>,
}

struct State {
    ram: Ram,
    unit: Hardware,
    probes: Vec<Probe>,
}

/// The machine: a handle to its memory and to its unit's registers.
#[derive(Clone)]
pub(crate) struct Machine(Rc<RefCell<State>>);

impl State {
    fn probe(&mut self) {
        for Probe { requester, address, may_reach } in &self.probes {
            let found = self.unit.access(&self.ram, *requester, *address, false);
            assert!(may_reach.contains(&found.ok()), "{requester:#x} reaches {found:x?} by {address:#x}");
            assert!(!found.is_err_and(is_of_a_wrong_table), "{requester:#x} meets a wrong table: {found:x?}");
        }
    }
}

/// Returns whether a reason is a table's entry that is not as the specification requires.
pub(super) fn is_of_a_wrong_table(reason: u8) -> bool {
    matches!(reason, 0x3 | 0x7..=0xc | 0x23 | 0x24)
}

impl Machine {
    pub(crate) fn new(features: Features) -> Self {
        let (ram, unit) = (Ram::new(features), Hardware::new(features));
        Self(Rc::new(RefCell::new(State { ram, unit, probes: Vec::new() })))
    }

    /// Lets a test see, or damage, the unit.
    pub(super) fn unit<T>(&self, act: impl FnOnce(&mut Hardware) -> T) -> T {
        act(&mut self.0.borrow_mut().unit)
    }

    pub(super) fn ram<T>(&self, act: impl FnOnce(&mut Ram) -> T) -> T {
        act(&mut self.0.borrow_mut().ram)
    }

    /// Marks a frame of this memory as given out, or as freed, by another allocator.
    pub(crate) fn set_used(&self, frame: u64, is_used: bool) {
        match is_used {
            true => self.ram(|ram| ram.give(frame)),
            false => {
                let is_cached = self.unit(|unit| unit.caches_table(frame));
                assert!(!is_cached, "{frame:#x} is given back, but the unit holds it");
                self.ram(|ram| ram.free(frame, 4096));
            }
        }
    }

    /// Stops its queue from here on.
    pub(crate) fn hang(&self) {
        self.unit(|unit| unit.hangs = true);
    }

    /// Accesses that functions make after every write to a register or to memory.
    pub(super) fn set_probes(&self, probes: Vec<Probe>) {
        self.0.borrow_mut().probes = probes;
    }

    /// Performs a function's access: returns where it leads, or the reason for which it is refused.
    pub(crate) fn access(&self, requester: u16, address: u64, is_write: bool) -> Result<u64, u8> {
        let state = &mut *self.0.borrow_mut();
        state.unit.access(&state.ram, requester, address, is_write)
    }

    /// Sends a function's interrupt: returns vector, destination, level.
    pub(crate) fn interrupt(&self, requester: u16, address: u64, data: u32) -> Result<(u8, u32, bool), u8> {
        let state = &mut *self.0.borrow_mut();
        state.unit.interrupt(&state.ram, requester, address, data)
    }

    /// Sends an I/O APIC's interrupt by an entry of its redirection table (section 5.1.5.1).
    pub(crate) fn input(&self, requester: u16, entry: u64) -> Result<(u8, u32, bool), u8> {
        let address = 0xfee0_0000 | (entry >> 48) << 4 | (entry >> 11 & 1) << 2;
        let sent = self.interrupt(requester, address, entry as u32 & 0x80ff);
        let is_nmi = entry & 1 << 48 == 0 && entry & 0x700 == 0x400;
        sent.map(|(vector, cpu, is_level)| (if is_nmi { interrupts::NMI_VECTOR } else { vector }, cpu, is_level))
    }

    fn write_register(&self, offset: u32, value: u64, bytes: u32) {
        let state = &mut *self.0.borrow_mut();
        state.unit.write(&mut state.ram, offset, value, bytes);
        state.probe();
    }
}

impl Registers for Machine {
    fn read32(&mut self, offset: u32) -> u32 {
        assert!(offset.is_multiple_of(4));
        (self.0.borrow_mut().unit.read(offset & !7) >> (offset % 8 * 8)) as u32
    }

    fn write32(&mut self, offset: u32, value: u32) {
        assert!(offset.is_multiple_of(4));
        self.write_register(offset, value.into(), 4);
    }

    fn read64(&mut self, offset: u32) -> u64 {
        assert!(offset.is_multiple_of(8));
        self.0.borrow_mut().unit.read(offset)
    }

    fn write64(&mut self, offset: u32, value: u64) {
        assert!(offset.is_multiple_of(8));
        self.write_register(offset, value, 8);
    }

    fn pause(&mut self) {}
}

impl TableMemory for Machine {
    fn allocate(&mut self) -> Option<PhysAddr> {
        self.allocate_piece(4096)
    }

    fn free(&mut self, table: PhysAddr) {
        self.free_piece(table, 4096);
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.read_word(PhysAddr(table.0 + index as u64 * 8))
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.write_word(PhysAddr(table.0 + index as u64 * 8), entry);
    }
}

impl Memory for Machine {
    fn allocate_piece(&mut self, bytes: u64) -> Option<PhysAddr> {
        self.ram(|ram| ram.allocate(bytes)).map(PhysAddr)
    }

    fn free_piece(&mut self, at: PhysAddr, bytes: u64) {
        self.ram(|ram| ram.free(at.0, bytes));
    }

    fn read_word(&self, at: PhysAddr) -> u64 {
        self.ram(|ram| ram.load(at.0))
    }

    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]) {
        self.write_word(at, values[0]);
        self.write_word(PhysAddr(at.0 + 8), values[1]);
    }

    fn write_word(&mut self, at: PhysAddr, value: u64) {
        self.ram(|ram| ram.store(at.0, value));
        self.0.borrow_mut().probe();
    }

    fn write_back(&mut self, at: PhysAddr, bytes: u64) {
        self.ram(|ram| ram.write_back(at.0, bytes));
    }
}
