// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UART with a wire that moves one byte per fixed number of accesses or pauses.

use std::collections::VecDeque;
use std::vec::Vec;

use crate::{FifoControl, Hardware, Identification, LineControl, ModemControl, Register};

/// Nanoseconds that an access or a pause takes.
const STEP_NS: u64 = 1_000;

#[derive(Clone, Debug)]
pub struct Fake {
    /// No UART is there: reads give ones, or what was written last.
    pub is_absent: bool,
    pub remembers_bus: bool,
    pub has_scratch: bool,
    pub has_loopback: bool,
    /// Number of bytes that the FIFO takes, and that it claims to take.
    pub depth: usize,
    pub claims: Identification,
    /// Nanoseconds per byte on the wire; 0 is at once.
    pub byte_ns: u64,
    /// The wire stands still.
    pub is_stuck: bool,
    pub has_clock: bool,
    pub now_ns: u64,
    pub reads: u64,
    pub writes: u64,
    pub bursts: Vec<usize>,
    /// Writes to the FIFO control register.
    pub fifo_writes: Vec<u8>,
    /// So many bytes come from outside while it is in loopback.
    pub hears_in_loopback: usize,
    pub status_reads: u64,
    /// Bytes that arrived at the wire's other end.
    pub received: Vec<u8>,
    /// Bytes that found no room.
    pub lost: usize,
    pub registers: [u8; 8],
    pub waiting: VecDeque<(u8, u64)>,
    pub looped: VecDeque<u8>,
    pub bus: u8,
}

impl Fake {
    /// A 16550A on a wire of 115,200 baud.
    pub fn new() -> Self {
        Self {
            is_absent: false,
            remembers_bus: false,
            has_scratch: true,
            has_loopback: true,
            depth: 16,
            claims: Identification::FIFO | Identification::FIFO_WORKS,
            byte_ns: 86_806,
            is_stuck: false,
            has_clock: true,
            now_ns: 0,
            reads: 0,
            writes: 0,
            bursts: Vec::new(),
            fifo_writes: Vec::new(),
            hears_in_loopback: 0,
            status_reads: 0,
            received: Vec::new(),
            lost: 0,
            registers: [0; 8],
            waiting: VecDeque::new(),
            looped: VecDeque::new(),
            bus: 0,
        }
    }

    /// Accesses of any kind so far.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    fn step(&mut self) {
        self.now_ns += STEP_NS;
        while !self.is_stuck && self.waiting.front().is_some_and(|(_, gone_at)| *gone_at <= self.now_ns) {
            let Some((byte, _)) = self.waiting.pop_front() else { break };
            if !self.is_looped() {
                self.received.push(byte);
            } else if self.has_loopback {
                self.looped.push_back(byte);
            }
        }
    }

    fn is_looped(&self) -> bool {
        self.registers[Register::ModemControl as usize] & ModemControl::LOOPBACK.bits() != 0
    }

    fn is_latch_open(&self) -> bool {
        self.registers[Register::LineControl as usize] & LineControl::DIVISOR.bits() != 0
    }

    /// The byte in the shift register does not count as waiting.
    fn take(&mut self, byte: u8) {
        let room = if self.claims.contains(Identification::FIFO_WORKS) { self.depth } else { 1 };
        if self.waiting.len() > room {
            self.lost += 1;
            return;
        }
        let begins = self.waiting.back().map_or(self.now_ns, |(_, gone_at)| *gone_at);
        self.waiting.push_back((byte, begins + self.byte_ns));
    }

    fn line_status(&mut self) -> u8 {
        self.status_reads += 1;
        let bit = |is_set: bool, bit: u8| u8::from(is_set) << bit;
        bit(!self.looped.is_empty(), 0) | bit(self.waiting.len() <= 1, 5) | bit(self.waiting.is_empty(), 6)
    }

    fn modem_status(&self) -> u8 {
        let lines = self.registers[Register::ModemControl as usize];
        if self.has_loopback && self.is_looped() { (lines & 1) << 5 | (lines & 2) << 3 } else { 0 }
    }
}

impl Hardware for Fake {
    fn read(&mut self, register: Register) -> u8 {
        self.step();
        self.reads += 1;
        if self.is_absent {
            return if self.remembers_bus { self.bus } else { 0xff };
        }
        match register {
            Register::Data if !self.is_latch_open() => self.looped.pop_front().unwrap_or(0),
            Register::Fifo if self.looped.len() >= 14 => self.claims.bits() | 4,
            Register::Fifo => self.claims.bits() | 1,
            Register::LineStatus => self.line_status(),
            Register::ModemStatus => self.modem_status(),
            Register::Scratch if !self.has_scratch => 0,
            other => self.registers[other as usize],
        }
    }

    fn write(&mut self, register: Register, value: u8) {
        self.step();
        self.writes += 1;
        self.bus = value;
        match register {
            _ if self.is_absent => {}
            Register::Fifo => {
                self.fifo_writes.push(value);
                if value & FifoControl::CLEAR_RECEIVER.bits() != 0 {
                    self.looped.clear();
                }
            }
            Register::Data if !self.is_latch_open() => self.take(value),
            other => self.registers[other as usize] = value,
        }
    }

    fn write_burst(&mut self, register: Register, bytes: &[u8]) {
        self.bursts.push(bytes.len());
        if self.is_looped() {
            self.looped.extend(core::iter::repeat_n(b'?', core::mem::take(&mut self.hears_in_loopback)));
        }
        bytes.iter().for_each(|&byte| self.write(register, byte));
    }

    fn now_ns(&mut self) -> Option<u64> {
        self.has_clock.then_some(self.now_ns)
    }

    fn pause(&mut self) {
        self.step();
    }
}
