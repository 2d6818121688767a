// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of the model (section 11.4).

use crate::intel::model::hardware::{Hardware, RECORDS, RECORDS_AT};
use crate::intel::model::memory::Ram;

const TRANSLATION: u32 = 1 << 31;
const ROOT_SET: u32 = 1 << 30;
const FLUSH: u32 = 1 << 27;
const QUEUE: u32 = 1 << 26;
const REMAPPING: u32 = 1 << 25;
const INTERRUPTS_SET: u32 = 1 << 24;
const LASTING: u32 = TRANSLATION | 1 << 28 | QUEUE | REMAPPING | 1 << 23;
const RECORDS_END: u32 = RECORDS_AT + 16 * RECORDS as u32;

impl Hardware {
    /// Reads eight bytes of registers.
    pub(super) fn read(&self, offset: u32) -> u64 {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        match offset {
            _ if self.is_gone => u64::MAX,
            0x00 => 0x10,
            0x08 => self.capability,
            0x10 => self.extended,
            0x18 => pair(0, self.status),
            0x20 => self.root,
            0x30 => pair(0, self.faults),
            0x38 => pair(self.event_controls[0], 0),
            0x60 => pair(0, self.protected),
            0x80 => self.head,
            0x88 => self.tail,
            0x90 => self.queue,
            0xa0 => pair(self.event_controls[1], 0),
            0xb8 => self.interrupts,
            RECORDS_AT..RECORDS_END => {
                let word = (offset - RECORDS_AT) / 8;
                self.records[word as usize / 2][word as usize % 2]
            }
            _ => panic!("register {offset:#x} is none"),
        }
    }

    pub(super) fn write(&mut self, ram: &mut Ram, offset: u32, value: u64, bytes: u32) {
        self.writes += 1;
        if self.is_gone || self.is_unresponsive {
            return;
        }
        match (offset, bytes) {
            (0x18, 4) => self.command(ram, value as u32),
            (0x20, 8) => self.root = value,
            (0x34, 4) => self.faults &= !(value as u32 & 0x71),
            (0x38, 4) => self.event_controls[0] = value as u32,
            (0xa0, 4) => self.event_controls[1] = value as u32,
            (0x64, 4) => self.protected = value as u32 >> 31 | value as u32 & 1 << 31,
            (0x68 | 0x6c, 4) | (0x70 | 0x78, 8) => assert_eq!(self.protected, 0, "regions change while protected"),
            (0x88, 8) => {
                self.tail = value;
                self.run(ram);
            }
            (0x90, 8) => {
                assert_eq!(self.status & QUEUE, 0, "the queue moves while it is enabled");
                self.queue = value;
            }
            (0xb8, 8) => self.interrupts = value,
            (RECORDS_AT..RECORDS_END, 4) if offset % 16 == 12 && value == 1 << 31 => {
                self.take_record((offset - RECORDS_AT) as usize / 16);
            }
            _ => panic!("register {offset:#x} is not written with {bytes} bytes"),
        }
    }

    /// Executes a command (section 11.4): one bit is changed at a time, and the persistent ones are repeated.
    fn command(&mut self, ram: &mut Ram, value: u32) {
        let once = value & (ROOT_SET | FLUSH | INTERRUPTS_SET);
        let changed = (value ^ self.status) & LASTING;
        assert!(
            once.count_ones() + changed.count_ones() <= 1,
            "two commands at once: {value:#x} at {:#x}",
            self.status
        );
        match once | changed {
            0 => {}
            ROOT_SET => {
                let is_same_mode = (self.root ^ self.root_in_use) & 3 << 10 == 0;
                assert!(self.status & TRANSLATION == 0 || is_same_mode, "the mode changes while it translates");
                self.root_in_use = self.root;
                self.status |= ROOT_SET;
            }
            INTERRUPTS_SET => {
                self.interrupts_in_use = self.interrupts;
                self.status |= INTERRUPTS_SET;
            }
            FLUSH => ram.flush_buffers(),
            changed => self.switch(ram, changed),
        }
    }

    fn switch(&mut self, ram: &mut Ram, changed: u32) {
        let needed = match changed {
            TRANSLATION => ROOT_SET,
            REMAPPING => INTERRUPTS_SET,
            _ => 0,
        };
        assert_eq!(self.status & needed, needed, "{changed:#x} is enabled without a table");
        if changed == TRANSLATION && self.status & TRANSLATION != 0 && self.protected == 0 {
            self.windows += 1;
        }
        if changed == QUEUE {
            let is_idle = self.head == self.tail || self.faults & 0x70 != 0;
            assert!(is_idle, "the queue is enabled or disabled while it is in use");
            self.head = 0;
        }
        self.status ^= changed;
        if self.status & changed & QUEUE != 0 {
            self.run(ram);
        }
    }
}
