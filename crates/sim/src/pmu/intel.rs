// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel's architectural performance monitoring (Intel SDM vol. 3, chapter 20), four general and three fixed counters.

use pmu::Msrs;

use super::{Register, Run, VENDOR_EVENT, counts_in_mode, number};

/// General counters.
const GENERAL: usize = 4;
/// Of fixed purpose.
const FIXED: usize = 3;
const ENABLE: u64 = 1 << 22;
const INTERRUPT: u64 = 1 << 20;
const GLOBAL_BITS: u64 = 0xf | 0b111 << 32;
const STATUS_CONDITION: u64 = 1 << 63;
/// Any thread, and above bit 31.
const SELECT_RESERVED: u64 = !0xffff_ffff | 1 << 21;

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IntelPmu {
    general: [Register; GENERAL],
    selects: [u64; GENERAL],
    fixed: [Register; FIXED],
    fixed_control: u64,
    global_control: u64,
    global_status: u64,
    /// Interrupts raised.
    pub interrupts: u64,
}

impl IntelPmu {
    /// CPUID leaf 0xA: EAX, EBX, EDX; and PERF_CAPABILITIES.
    pub const CPUID: (u32, u32, u32, u64) = (2 | 4 << 8 | 48 << 16 | 7 << 24, 0, 3 | 48 << 5, 1 << 13);

    /// The processor does something.
    pub fn run(&mut self, run: &Run) {
        for at in 0..GENERAL {
            let select = self.selects[at];
            let is_on = select & ENABLE != 0 && self.global_control & 1 << at != 0 && counts_in_mode(select, run);
            let more = match number(select) {
                (0x3c, 0) => run.cycles,
                (0xc0, 0) => run.instructions,
                other if other == VENDOR_EVENT => run.vendor,
                _ => 0,
            };
            if is_on && self.general[at].advance(more) {
                self.overflow(at, select & INTERRUPT != 0);
            }
        }
        for at in 0..FIXED {
            let field = self.fixed_control >> (4 * at);
            let is_on = self.global_control & 1 << (32 + at) != 0 && field & if run.is_kernel { 1 } else { 2 } != 0;
            let more = [run.instructions, run.cycles, run.reference_cycles][at];
            if is_on && self.fixed[at].advance(more) {
                self.overflow(32 + at, field & 8 != 0);
            }
        }
    }

    /// Whether nothing of anybody is left in the counters.
    pub fn is_clear(&self) -> bool {
        *self == Self { interrupts: self.interrupts, ..Self::default() }
    }

    fn overflow(&mut self, bit: usize, interrupts: bool) {
        self.global_status |= 1 << bit;
        self.interrupts += u64::from(interrupts);
    }
}

impl Msrs for IntelPmu {
    fn read(&mut self, number: u32) -> u64 {
        match number {
            0xc1..=0xc4 => self.general[number as usize - 0xc1].value,
            0x186..=0x189 => self.selects[number as usize - 0x186],
            0x309..=0x30b => self.fixed[number as usize - 0x309].value,
            0x38d => self.fixed_control,
            0x38e => self.global_status,
            0x38f => self.global_control,
            _ => panic!("#GP: RDMSR {number:#x}"),
        }
    }

    fn write(&mut self, number: u32, value: u64) {
        let within = |mask: u64| assert_eq!(value & !mask, 0, "#GP: WRMSR {number:#x} of {value:#x}");
        match number {
            0x4c1..=0x4c4 => self.general[number as usize - 0x4c1].set(value),
            0x186..=0x189 => {
                within(!SELECT_RESERVED);
                self.selects[number as usize - 0x186] = value;
            }
            0x309..=0x30b => self.fixed[number as usize - 0x309].set(value),
            0x38d => {
                within(0xbbb);
                self.fixed_control = value;
            }
            0x38f => {
                within(GLOBAL_BITS);
                self.global_control = value;
            }
            0x390 => {
                within(GLOBAL_BITS | STATUS_CONDITION);
                self.global_status &= !value;
            }
            _ => panic!("#GP: WRMSR {number:#x}"),
        }
    }
}
