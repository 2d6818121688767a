// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of an AMD-Vi unit and of the machine's memory, after 48882 rev 3.10. Its caches hold everything that it has
//! read, what is absent too, until a command invalidates it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::vec::Vec;

use paging::TableMemory;
use units::PhysAddr;

use super::super::registers::*;
use super::walk::Caches;
use crate::{Memory, Registers};

/// EFR: XTSup, IASup, GASup.
pub const ALL_FEATURES: u64 = 1 << 2 | 1 << 6 | 1 << 7;
/// Physical memory from here up is given out.
const FIRST: u64 = 0x10_0000;

/// The machine: clones are the same one. It is the unit's registers and the memory both.
#[derive(Clone)]
pub struct Machine(pub Rc<RefCell<State>>);

pub struct State {
    pub registers: BTreeMap<u32, u64>,
    pub pages: BTreeMap<u64, Vec<u64>>,
    next: u64,
    pub caches: Caches,
    /// Carries out no command, and stops nothing.
    pub is_dead: bool,
    /// Writes to registers and memory by the host.
    pub writes: u64,
    pub pieces_left: usize,
    /// Accesses that must never succeed, tried after every write to a register.
    pub forbidden: Vec<(u16, u64)>,
    pub commands: VecDeque<[u64; 2]>,
}

impl Machine {
    pub fn new(features: u64) -> Self {
        let state = State {
            registers: BTreeMap::from([(EXTENDED_FEATURES, features)]),
            pages: BTreeMap::new(),
            next: FIRST,
            caches: Caches::default(),
            is_dead: false,
            writes: 0,
            pieces_left: usize::MAX,
            forbidden: Vec::new(),
            commands: VecDeque::new(),
        };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Returns the two sides that the driver takes.
    pub fn sides(&self) -> (Self, Self) {
        (self.clone(), self.clone())
    }

    pub fn set(&self, register: u32, value: u64) {
        self.0.borrow_mut().registers.insert(register, value);
    }

    pub fn get(&self, register: u32) -> u64 {
        self.0.borrow().register(register)
    }

    pub fn writes(&self) -> u64 {
        self.0.borrow().writes
    }

    /// Marks a frame of this memory as given out, or as freed, by another allocator.
    pub fn set_used(&self, frame: u64, is_used: bool) {
        let mut state = self.0.borrow_mut();
        if is_used {
            state.pages.insert(frame, std::vec![0x0bad_bad0_bad0_1f8f; 512]);
        } else {
            assert!(!state.caches.have_table(frame), "{frame:#x} is given back, but the unit holds it");
            state.pages.remove(&frame).expect("a frame was given out");
        }
    }

    pub fn pages(&self) -> usize {
        self.0.borrow().pages.len()
    }
}

impl State {
    pub fn register(&self, register: u32) -> u64 {
        self.registers.get(&register).copied().unwrap_or(0)
    }

    /// Reads memory as the unit does. Memory that was freed has no owner: reading it is a defect.
    pub fn load(&self, at: u64) -> u64 {
        let page = self.pages.get(&(at & !4095)).unwrap_or_else(|| panic!("the unit reads {at:#x}, which is free"));
        page[(at % 4096 / 8) as usize]
    }

    pub fn store(&mut self, at: u64, value: u64) {
        let page = self.pages.get_mut(&(at & !4095)).unwrap_or_else(|| panic!("{at:#x} is written, which is free"));
        page[(at % 4096 / 8) as usize] = value;
    }

    fn allocate(&mut self, bytes: u64) -> Option<PhysAddr> {
        self.pieces_left = self.pieces_left.checked_sub(1)?;
        let at = self.next.next_multiple_of(bytes);
        self.next = at + bytes;
        self.pages.extend((0..bytes / 4096).map(|page| (at + page * 4096, std::vec![0; 512])));
        Some(PhysAddr(at))
    }

    fn release(&mut self, at: PhysAddr, bytes: u64) {
        for page in 0..bytes / 4096 {
            self.pages.remove(&(at.0 + page * 4096)).expect("a piece was given out");
        }
    }

    fn ring(&self, base: u32) -> (u64, u64) {
        let register = self.register(base);
        (register & ADDRESS, 16 << (register >> 56 & 0xf))
    }

    fn written(&mut self, register: u32, value: u64) {
        self.writes += 1;
        match register {
            STATUS => {
                let kept = self.register(STATUS) & !(value & (status::EVENT_OVERFLOW | status::EVENT_INTERRUPT));
                self.registers.insert(STATUS, kept);
            }
            COMMAND_BASE => self.registers.extend([(COMMAND_BASE, value), (COMMAND_HEAD, 0), (COMMAND_TAIL, 0)]),
            EVENT_BASE => self.registers.extend([(EVENT_BASE, value), (EVENT_HEAD, 0), (EVENT_TAIL, 0)]),
            EXTENDED_FEATURES => panic!("a read-only register is written"),
            _ => drop(self.registers.insert(register, value)),
        }
        if !self.is_dead {
            self.run();
        }
        for (requester, address) in self.forbidden.clone() {
            let reached = self.reach(requester, address, false);
            assert!(reached.is_err(), "{requester:#x} reaches {address:#x} after a write to {register:#x}");
        }
    }

    /// Starts and stops rings as the control register has it, and carries out commands.
    fn run(&mut self) {
        let control = self.register(CONTROL);
        let is_enabled = control & control::ENABLE != 0;
        for (bit, running) in [(control::COMMANDS, status::COMMANDS_RUN), (control::EVENT_LOG, status::EVENT_LOG_RUNS)]
        {
            let before = self.register(STATUS);
            let is_stopped = running == status::EVENT_LOG_RUNS && before & status::EVENT_OVERFLOW != 0;
            let runs = if is_enabled && control & bit != 0 && !is_stopped { running } else { 0 };
            self.registers.insert(STATUS, before & !running | runs);
        }
        let (base, bytes) = self.ring(COMMAND_BASE);
        while self.register(STATUS) & status::COMMANDS_RUN != 0
            && self.register(COMMAND_HEAD) != self.register(COMMAND_TAIL)
        {
            let head = self.register(COMMAND_HEAD);
            let command = [self.load(base + head), self.load(base + head + 8)];
            self.commands.push_back(command);
            self.carry_out(command);
            self.registers.insert(COMMAND_HEAD, (head + 16) % bytes);
        }
    }

    fn carry_out(&mut self, [first, second]: [u64; 2]) {
        let requester = first as u16;
        let domain = (first >> 32) as u16;
        match (first >> 60, first & !(0xf << 60)) {
            (1, operand) if operand & 0b111 == 1 => self.store(operand & 0x000f_ffff_ffff_fff8, second),
            (2, operand) if operand == u64::from(requester) && second == 0 => {
                self.caches.entries.remove(&requester);
            }
            (3, operand) if operand == u64::from(domain) << 32 => self.caches.invalidate_pages(domain, second),
            (5, operand) if operand == u64::from(requester) && second == 0 => {
                self.caches.interrupts.retain(|(owner, _), _| *owner != requester);
            }
            (8, 0) if self.register(EXTENDED_FEATURES) & 1 << 6 != 0 => self.caches = Caches::default(),
            _ => panic!("illegal command {first:#x} {second:#x}"),
        }
    }

    /// Logs an event; drops it when the log is full.
    pub fn log(&mut self, event: [u64; 2]) {
        if self.register(STATUS) & status::EVENT_LOG_RUNS == 0 {
            return;
        }
        let (base, bytes) = self.ring(EVENT_BASE);
        let tail = self.register(EVENT_TAIL);
        let next = (tail + 16) % bytes;
        if next == self.register(EVENT_HEAD) {
            let status = self.register(STATUS) & !status::EVENT_LOG_RUNS | status::EVENT_OVERFLOW;
            self.registers.insert(STATUS, status);
            return;
        }
        self.store(base + tail, event[0]);
        self.store(base + tail + 8, event[1]);
        self.registers.insert(EVENT_TAIL, next);
    }

    /// Entries of the table in use are only replaced by halves.
    fn check_word(&self, at: u64) {
        let register = self.register(DEVICE_TABLE_BASE);
        let (base, bytes) = (register & ADDRESS, ((register & 0x1ff) + 1) * 4096);
        let is_entry = self.register(CONTROL) & control::ENABLE != 0 && (base..base + bytes).contains(&at);
        assert!(!is_entry, "an entry of the device table is written by words");
    }
}

impl Registers for Machine {
    fn read32(&mut self, offset: u32) -> u32 {
        self.get(offset) as u32
    }

    fn write32(&mut self, offset: u32, value: u32) {
        assert!(offset >= COMMAND_HEAD, "half of a register is written");
        self.0.borrow_mut().written(offset, value.into());
    }

    fn read64(&mut self, offset: u32) -> u64 {
        self.get(offset)
    }

    fn write64(&mut self, offset: u32, value: u64) {
        self.0.borrow_mut().written(offset, value);
    }

    fn pause(&mut self) {}
}

impl TableMemory for Machine {
    fn allocate(&mut self) -> Option<PhysAddr> {
        self.0.borrow_mut().allocate(4096)
    }

    fn free(&mut self, table: PhysAddr) {
        self.0.borrow_mut().release(table, 4096);
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.0.borrow().load(table.0 + 8 * index as u64)
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.0.borrow_mut().store(table.0 + 8 * index as u64, entry);
    }
}

impl Memory for Machine {
    fn allocate_piece(&mut self, bytes: u64) -> Option<PhysAddr> {
        assert!(bytes.is_power_of_two() && bytes >= 4096);
        self.0.borrow_mut().allocate(bytes)
    }

    fn free_piece(&mut self, at: PhysAddr, bytes: u64) {
        self.0.borrow_mut().release(at, bytes);
    }

    fn read_word(&self, at: PhysAddr) -> u64 {
        self.0.borrow().load(at.0)
    }

    fn write_word(&mut self, at: PhysAddr, value: u64) {
        let mut state = self.0.borrow_mut();
        state.writes += 1;
        state.check_word(at.0);
        state.store(at.0, value);
    }

    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]) {
        assert!(at.is_aligned(16));
        let mut state = self.0.borrow_mut();
        state.writes += 1;
        state.store(at.0, values[0]);
        state.store(at.0 + 8, values[1]);
    }

    fn write_back(&mut self, _: PhysAddr, _: u64) {}
}
