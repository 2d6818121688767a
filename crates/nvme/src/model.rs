// SPDX-License-Identifier: MIT OR Apache-2.0
//! A controller as the specification has it, with faults.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use crate::registers::{ACQ, ADMIN_TAIL, AQA, ASQ, CAP, CC, CSTS};
use crate::{Memory, Registers};

pub const ADDRESS: u64 = 0x8_0000;

/// The fault of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    NeverReady,
    NeverDisabled,
    Fatal,
    Unresponsive,
    /// It completes with this status.
    Status(u16),
    /// After so many accesses it is gone.
    VanishesAfter(u32),
}

/// A controller, and the memory that it reaches.
pub struct Controller {
    pub capabilities: u64,
    pub serial: [u8; 20],
    pub fault: Fault,
    pub memory: Vec<u64>,
    pub pauses: u64,
    pub registers: BTreeMap<u64, u32>,
    pub accesses: u32,
}

/// Both seams to one controller. The driver uses one at a time.
pub struct Seam<'a>(pub &'a std::cell::RefCell<Controller>);

impl Controller {
    pub fn new(serial: &str) -> Self {
        let mut field = [b' '; 20];
        field[..serial.len()].copy_from_slice(serial.as_bytes());
        Self {
            // A second to be ready, the NVM command set, queues of 2,048 entries.
            capabilities: 1 << 37 | 2 << 24 | 0x7ff,
            serial: field,
            fault: Fault::None,
            // Contents that an owner before has left.
            memory: vec![u64::MAX; (crate::DMA_BYTES / 8) as usize],
            pauses: 0,
            registers: BTreeMap::from([(CC, 0x0046_0001), (CSTS, 1)]),
            accesses: 0,
        }
    }

    pub fn register(&self, offset: u64) -> u32 {
        self.registers.get(&offset).copied().unwrap_or(0)
    }

    fn is_gone(&mut self) -> bool {
        self.accesses += 1;
        matches!(self.fault, Fault::VanishesAfter(count) if self.accesses > count)
    }

    fn configure(&mut self, value: u32) {
        let status = match (value & 1, self.fault) {
            (1, Fault::NeverReady) => 0,
            (0, Fault::NeverDisabled) => 1,
            (1, Fault::Fatal) => 2,
            (enabled, _) => enabled,
        };
        self.registers.insert(CSTS, status);
    }

    fn word(&mut self, address: u64) -> &mut u64 {
        &mut self.memory[((address - ADDRESS) / 8) as usize]
    }

    fn wide(&self, offset: u64) -> u64 {
        u64::from(self.register(offset + 4)) << 32 | u64::from(self.register(offset))
    }

    /// The doorbell: executes the first entry.
    fn execute(&mut self) {
        assert_eq!((self.register(CSTS), self.register(AQA)), (1, 0x1_0001));
        if self.fault == Fault::Unresponsive {
            return;
        }
        let (submissions, completions) = (self.wide(ASQ), self.wide(ACQ));
        let command = *self.word(submissions);
        let (answer, structure) = (*self.word(submissions + 24), *self.word(submissions + 40));
        assert_eq!((command as u8, structure), (0x06, 1), "Identify Controller");
        let status = if let Fault::Status(status) = self.fault { status } else { 0 };
        let mut bytes = [0; 24];
        bytes[4..].copy_from_slice(&self.serial);
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            *self.word(answer + index as u64 * 8) = u64::from_le_bytes(word.try_into().unwrap());
        }
        let id = command >> 16 & 0xffff;
        *self.word(completions + 8) = u64::from(status << 1 | 1) << 48 | id << 32;
    }
}

impl Registers for Seam<'_> {
    fn read32(&mut self, offset: u64) -> u32 {
        let mut controller = self.0.borrow_mut();
        if controller.is_gone() {
            return u32::MAX;
        }
        match offset {
            CAP => controller.capabilities as u32,
            4 => (controller.capabilities >> 32) as u32,
            _ => controller.register(offset),
        }
    }

    fn write32(&mut self, offset: u64, value: u32) {
        let mut controller = self.0.borrow_mut();
        if controller.is_gone() {
            return;
        }
        controller.registers.insert(offset, value);
        match offset {
            CC => controller.configure(value),
            ADMIN_TAIL => controller.execute(),
            _ => {}
        }
    }

    fn pause(&mut self) {
        self.0.borrow_mut().pauses += 1;
    }
}

impl Memory for Seam<'_> {
    fn read(&mut self, offset: u64) -> u64 {
        *self.0.borrow_mut().word(ADDRESS + offset)
    }

    fn write(&mut self, offset: u64, value: u64) {
        *self.0.borrow_mut().word(ADDRESS + offset) = value;
    }
}
