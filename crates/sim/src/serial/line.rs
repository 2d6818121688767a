// SPDX-License-Identifier: MIT OR Apache-2.0
//! The UART: registers, FIFO, shift register, wire (PC16550D data sheet, section 8).

use std::collections::VecDeque;

use uart::{Hardware, Identification, Interrupts, LineControl, LineStatus, ModemControl, Register};

use super::setup::Setup;
use crate::random::Random;

/// Size of the receiver's FIFO in bytes.
const RECEIVER_BYTES: usize = 64;
/// Duration of a waiting CPU's pause in ns.
const PAUSE_NS: u64 = 50;

/// A UART and its clock.
#[derive(Clone, Debug)]
pub struct Line {
    setup: Setup,
    now_ns: u64,
    random: Random,
    registers: [u8; 8],
    /// Bytes that wait for the shift register.
    fifo: VecDeque<u8>,
    /// The byte on the wire, and when it will have left.
    shifting: Option<(u8, u64)>,
    looped: VecDeque<u8>,
    /// Time at which the CPU will see the interrupt that is pending.
    interrupt_at_ns: Option<u64>,
    /// Bytes that arrived at the other end.
    pub received: Vec<u8>,
    /// Time of the last one's arrival.
    pub last_at_ns: u64,
    /// Bytes that found no room.
    pub lost: u64,
    /// Port accesses.
    pub accesses: u64,
    /// Of these, reads of the line status.
    pub polls: u64,
}

impl Line {
    /// Returns a UART as firmware leaves it.
    pub fn new(setup: Setup) -> Self {
        Self {
            random: Random(setup.seed),
            setup,
            now_ns: 0,
            registers: [0; 8],
            fifo: VecDeque::new(),
            shifting: None,
            looped: VecDeque::new(),
            interrupt_at_ns: None,
            received: Vec::new(),
            last_at_ns: 0,
            lost: 0,
            accesses: 0,
            polls: 0,
        }
    }

    /// Returns the model's time.
    pub fn now(&self) -> u64 {
        self.now_ns
    }

    /// Returns when the CPU will see an interrupt, if one is pending.
    pub fn interrupt_at(&self) -> Option<u64> {
        self.interrupt_at_ns
    }

    /// Returns when the byte on the wire will have left.
    pub fn next_change(&self) -> Option<u64> {
        self.shifting.map(|(_, gone_at)| gone_at).filter(|&at| !self.is_dead_at(at))
    }

    /// Notes that the CPU has seen the interrupt.
    pub fn take_interrupt(&mut self) {
        self.interrupt_at_ns = None;
    }

    /// Lets the time pass up to a moment.
    pub fn advance_to(&mut self, moment_ns: u64) {
        while let Some((byte, gone_at)) = self.shifting.filter(|(_, at)| *at <= moment_ns && !self.is_dead_at(*at)) {
            self.shifting = None;
            self.deliver(byte, gone_at);
            self.shift_next(gone_at);
        }
        self.now_ns = self.now_ns.max(moment_ns);
    }

    fn is_dead_at(&self, moment_ns: u64) -> bool {
        self.setup.dies_at_ns.is_some_and(|dies_at| moment_ns >= dies_at)
    }

    fn deliver(&mut self, byte: u8, at_ns: u64) {
        if !self.is_looped() {
            self.received.push(byte);
            self.last_at_ns = at_ns;
        } else if self.looped.len() < RECEIVER_BYTES {
            self.looped.push_back(byte);
        }
    }

    fn shift_next(&mut self, at_ns: u64) {
        if self.shifting.is_none()
            && let Some(byte) = self.fifo.pop_front()
        {
            self.shifting = Some((byte, at_ns + self.setup.rate.byte_ns()));
            if self.fifo.is_empty() {
                self.transmitter_empty(at_ns);
            }
        }
    }

    fn transmitter_empty(&mut self, at_ns: u64) {
        let wanted = Interrupts::from_bits_retain(self.registers[Register::Interrupts as usize]);
        if wanted.contains(Interrupts::TRANSMITTER_EMPTY) {
            self.interrupt_at_ns = Some(at_ns + self.random.within(&self.setup.latency_ns));
        }
    }

    fn is_looped(&self) -> bool {
        let lines = ModemControl::from_bits_retain(self.registers[Register::ModemControl as usize]);
        lines.contains(ModemControl::LOOPBACK)
    }

    fn is_latch_open(&self) -> bool {
        let format = LineControl::from_bits_retain(self.registers[Register::LineControl as usize]);
        format.contains(LineControl::DIVISOR)
    }

    fn take(&mut self, byte: u8) {
        self.interrupt_at_ns = None;
        if self.fifo.len() < self.setup.depth {
            self.fifo.push_back(byte);
        } else {
            self.lost += 1;
        }
        self.shift_next(self.now_ns);
    }

    fn status(&self) -> LineStatus {
        let mut status = LineStatus::empty();
        status.set(LineStatus::DATA_READY, !self.looped.is_empty());
        status.set(LineStatus::TRANSMITTER_EMPTY, self.fifo.is_empty());
        status.set(LineStatus::LINE_IDLE, self.fifo.is_empty() && self.shifting.is_none());
        status
    }

    fn identification(&self) -> Identification {
        let fifo = Identification::FIFO | Identification::FIFO_WORKS;
        match self.setup.claims {
            1 => Identification::empty(),
            64 => fifo | Identification::FIFO_64,
            _ => fifo,
        }
    }

    fn spend(&mut self, register: Register, is_read: bool) {
        self.accesses += 1;
        let is_poll = is_read && register == Register::LineStatus;
        self.polls += u64::from(is_poll);
        let cost = if is_poll { self.random.within(&self.setup.status_ns) } else { self.setup.access_ns };
        self.advance_to(self.now_ns + cost);
    }
}

impl Hardware for Line {
    fn read(&mut self, register: Register) -> u8 {
        self.spend(register, true);
        match register {
            Register::Data if !self.is_latch_open() => self.looped.pop_front().unwrap_or(0),
            Register::Fifo => self.identification().bits(),
            Register::LineStatus => self.status().bits(),
            other => self.registers[other as usize],
        }
    }

    fn write(&mut self, register: Register, value: u8) {
        self.spend(register, false);
        match register {
            Register::Data if !self.is_latch_open() => return self.take(value),
            Register::Fifo => return self.looped.clear(),
            other => self.registers[other as usize] = value,
        }
        if register == Register::Interrupts && !self.is_latch_open() && self.fifo.is_empty() {
            self.transmitter_empty(self.now_ns);
        }
    }

    fn now_ns(&mut self) -> Option<u64> {
        Some(self.now_ns)
    }

    fn pause(&mut self) {
        self.advance_to(self.now_ns + PAUSE_NS);
    }
}
