// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel's architectural performance monitoring (Intel SDM vol. 3, chapter 20), four general and three fixed counters.

use pmu::Msrs;

use super::activity::Run;
use super::register::{Register, VENDOR_EVENT, counts_in_mode, number};

/// General counters.
const GENERAL: usize = 4;
/// Of fixed purpose.
const FIXED: usize = 3;
/// Number of the first one in the global registers.
const FIRST_FIXED: usize = 32;
/// All counters, as the global registers have them.
pub(super) const COUNTERS: [usize; GENERAL + FIXED] = [0, 1, 2, 3, 32, 33, 34];
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

    /// Has the CPU do something.
    pub fn run(&mut self, run: &Run) {
        for bit in COUNTERS {
            self.count(bit, self.seen(bit, run));
        }
    }

    /// Returns what a counter, by its bit in the global registers, sees of what the CPU does.
    pub(super) fn seen(&self, bit: usize, run: &Run) -> u64 {
        let (is_on, more) = match bit.checked_sub(FIRST_FIXED) {
            None => {
                let select = self.selects[bit];
                let more = match number(select) {
                    (0x3c, 0) => run.cycles,
                    (0xc0, 0) => run.instructions,
                    other if other == VENDOR_EVENT => run.vendor,
                    _ => 0,
                };
                (select & ENABLE != 0 && counts_in_mode(select, run), more)
            }
            Some(at) => {
                let mode = if run.is_kernel { 1 } else { 2 };
                let more = [run.instructions, run.cycles, run.reference_cycles][at];
                (self.fixed_control >> (4 * at) & mode != 0, more)
            }
        };
        if is_on && self.global_control & 1 << bit != 0 { more } else { 0 }
    }

    /// Counts `more`.
    pub(super) fn count(&mut self, bit: usize, more: u64) {
        if !self.counter(bit).advance(more) {
            return;
        }
        self.global_status |= 1 << bit;
        let interrupts = match bit.checked_sub(FIRST_FIXED) {
            None => self.selects[bit] & INTERRUPT != 0,
            Some(at) => self.fixed_control >> (4 * at) & 8 != 0,
        };
        self.interrupts += u64::from(interrupts);
    }

    pub(super) fn counter(&mut self, bit: usize) -> &mut Register {
        match bit.checked_sub(FIRST_FIXED) {
            None => &mut self.general[bit],
            Some(at) => &mut self.fixed[at],
        }
    }

    /// Returns whether no user's values are left in the counters.
    pub fn is_clear(&self) -> bool {
        *self == Self { interrupts: self.interrupts, ..Self::default() }
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
