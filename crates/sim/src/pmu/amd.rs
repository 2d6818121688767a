// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD's core counters (AMD APM vol. 2, section 13.2): the older four, the extension's six, or those with global
//! registers.

use pmu::Msrs;

use super::activity::Run;
use super::register::{Register, VENDOR_EVENT, counts_in_mode, number};

const ENABLE: u64 = 1 << 22;
const INTERRUPT: u64 = 1 << 20;
const GUEST_ONLY: u64 = 1 << 40;
const HOST_ONLY: u64 = 1 << 41;
/// Bits that mean something: event, unit, modes, edge, interrupt, enable, inversion, threshold, event, guest or host
/// only.
const SELECT_BITS: u64 = 0x30f_ffd7_ffff;

/// Generation of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Four counters under their older names.
    Legacy,
    /// Six.
    Extended,
    /// Six, and global registers.
    Global,
}

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmdPmu {
    generation: Generation,
    counters: [Register; 6],
    selects: [u64; 6],
    global_control: u64,
    global_status: u64,
    /// Interrupts raised.
    pub interrupts: u64,
}

impl AmdPmu {
    /// Creates one with all registers zero.
    pub fn new(generation: Generation) -> Self {
        Self {
            generation,
            counters: [Register::default(); 6],
            selects: [0; 6],
            global_control: 0,
            global_status: 0,
            interrupts: 0,
        }
    }

    /// Returns CPUID's registers: ECX of leaf 0x8000_0001; EAX and EBX of leaf 0x8000_0022.
    pub fn cpuid(&self) -> (u32, u32, u32) {
        match self.generation {
            Generation::Legacy => (0, 0, 0),
            Generation::Extended => (1 << 23, 0, 0),
            Generation::Global => (1 << 23, 1, 6),
        }
    }

    /// Has the CPU do something.
    pub fn run(&mut self, run: &Run) {
        for at in 0..self.counters.len() {
            let select = self.selects[at];
            let is_let = self.generation != Generation::Global || self.global_control & 1 << at != 0;
            let side = match (select & GUEST_ONLY != 0, select & HOST_ONLY != 0) {
                (true, false) => run.is_guest,
                (false, true) => !run.is_guest,
                _ => true,
            };
            let more = match number(select) {
                (0x76, 0) => run.cycles,
                (0xc0, 0) => run.instructions,
                (0x120, 1) => run.reference_cycles,
                other if other == VENDOR_EVENT => run.vendor,
                _ => 0,
            };
            let is_on = select & ENABLE != 0 && is_let && side && counts_in_mode(select, run);
            if is_on && self.counters[at].advance(more) {
                self.global_status |= 1 << at;
                self.interrupts += u64::from(select & INTERRUPT != 0);
            }
        }
    }

    /// Returns whether no user's values are left in the counters.
    pub fn is_clear(&self) -> bool {
        let status = if self.generation == Generation::Global { 0 } else { self.global_status };
        *self == Self { interrupts: self.interrupts, global_status: status, ..Self::new(self.generation) }
    }

    /// Returns the counter that a register belongs to, and whether it is its select.
    fn place(&self, register: u32) -> (usize, bool) {
        match register {
            0xc001_0000..=0xc001_0003 => (register as usize & 3, true),
            0xc001_0004..=0xc001_0007 => (register as usize & 3, false),
            0xc001_0200..=0xc001_020b if self.generation != Generation::Legacy => {
                ((register as usize - 0xc001_0200) / 2, register & 1 == 0)
            }
            _ => panic!("#GP: MSR {register:#x}"),
        }
    }

    fn has_global(&self) -> bool {
        self.generation == Generation::Global
    }
}

impl Msrs for AmdPmu {
    fn read(&mut self, register: u32) -> u64 {
        match register {
            0xc000_0300 if self.has_global() => self.global_status,
            0xc000_0301 if self.has_global() => self.global_control,
            _ => match self.place(register) {
                (at, true) => self.selects[at],
                (at, false) => self.counters[at].value,
            },
        }
    }

    fn write(&mut self, register: u32, value: u64) {
        match register {
            0xc000_0301 if self.has_global() => {
                assert_eq!(value & !0x3f, 0, "there are six counters: {value:#x}");
                self.global_control = value;
            }
            0xc000_0302 if self.has_global() => self.global_status &= !value,
            _ => match self.place(register) {
                (at, true) => {
                    assert_eq!(value & !SELECT_BITS, 0, "reserved bits are set: {value:#x}");
                    self.selects[at] = value;
                }
                (at, false) => self.counters[at].set(value),
            },
        }
    }
}
