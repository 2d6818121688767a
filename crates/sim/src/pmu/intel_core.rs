// SPDX-License-Identifier: MIT OR Apache-2.0
//! An Intel CPU's counters with PEBS, last branch records and top-down metrics.

use pmu::Msrs;

use super::activity::Activity;
use super::intel::{COUNTERS, IntelPmu};
use super::lbr::LbrRing;
use super::pebs::{Linear, PebsUnit, Source};
use super::topdown::{ENABLE_METRICS, ENABLE_SLOTS, Metrics};

const SELECT_ADAPTIVE: u64 = 1 << 34;
const FIXED_ADAPTIVE: u64 = 0x111 << 32;
const SLOTS_FIELD: u64 = 0xb000;
const STATUS_BUFFER: u64 = 1 << 62;
const TOPDOWN: u64 = ENABLE_SLOTS | ENABLE_METRICS;
const DATA_CONFIG_BITS: u64 = 0xff00_000f;
const COUNTER_BITS: u64 = 0xf | 0b111 << 32;

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IntelCore {
    counters: IntelPmu,
    pebs: PebsUnit,
    lbr: LbrRing,
    metrics: Metrics,
    adaptive: u64,
    slots_field: u64,
    topdown_control: u64,
    topdown_status: u64,
}

impl IntelCore {
    /// CPUID: leaf 1's ECX and EDX, leaf 0xA's EDX; PERF_CAPABILITIES. See [`IntelPmu::CPUID`] for the counters.
    pub const CPUID: (u32, u32, u32, u64) = (1 << 2, 1 << 21, 4 | 48 << 5, 0x3f | 1 << 13 | 1 << 14 | 1 << 15 | 4 << 8);
    /// CPUID: leaf 7's EDX, leaf 0x1C's EAX and EBX.
    pub const LBR_CPUID: (u32, u32, u32) = LbrRing::CPUID;

    /// Has the CPU do something; `memory` is that of the CPU that does it.
    pub fn run(&mut self, activity: &Activity<'_>, memory: &mut impl Linear) {
        for branch in activity.branches {
            self.lbr.record(branch, activity.run.is_kernel);
        }
        for bit in COUNTERS {
            let more = self.counters.seen(bit, &activity.run);
            if self.pebs.enable & 1 << bit == 0 {
                self.counters.count(bit, more);
                continue;
            }
            let is_adaptive = self.adaptive & 1 << bit != 0;
            let source = Source { bit, is_adaptive, activity, branches: &self.lbr };
            self.pebs.count(self.counters.counter(bit), more, &source, memory);
        }
        let mode = if activity.run.is_kernel { 0x1000 } else { 0x2000 };
        let counts = self.topdown_control & ENABLE_SLOTS != 0 && self.slots_field & mode != 0;
        if counts && self.metrics.count(activity.slots, self.topdown_control & ENABLE_METRICS != 0) {
            self.topdown_status |= self.topdown_control;
        }
    }

    /// Interrupts raised.
    pub fn interrupts(&self) -> u64 {
        self.counters.interrupts + self.pebs.interrupts
    }

    /// Returns whether no user's values are left in it.
    pub fn is_clear(&self) -> bool {
        let mut rest = self.clone();
        rest.counters = IntelPmu::default();
        rest.pebs.interrupts = 0;
        self.counters.is_clear() && rest == Self::default()
    }

    fn set_adaptive(&mut self, bit: u32, is_adaptive: bool) {
        self.adaptive = self.adaptive & !(1 << bit) | u64::from(is_adaptive) << bit;
    }
}

impl Msrs for IntelCore {
    fn read(&mut self, number: u32) -> u64 {
        let others = match number {
            0x3f1 => return self.pebs.enable,
            0x3f2 => return self.pebs.data_config,
            0x600 => return self.pebs.ds_area,
            0x186..=0x189 => (self.adaptive >> (number - 0x186) & 1) << 34,
            0x38d => {
                self.slots_field | (0..3).fold(0, |all, at| all | (self.adaptive >> (32 + at) & 1) << (32 + 4 * at))
            }
            0x38e => self.topdown_status | if self.pebs.is_full { STATUS_BUFFER } else { 0 },
            0x38f => self.topdown_control,
            _ => 0,
        };
        let own = self.lbr.read(number).or_else(|| self.metrics.read(number));
        own.unwrap_or_else(|| self.counters.read(number) | others)
    }

    fn write(&mut self, number: u32, value: u64) {
        let within = |mask: u64| assert_eq!(value & !mask, 0, "#GP: WRMSR {number:#x} of {value:#x}");
        match number {
            0x3f1 => {
                within(COUNTER_BITS);
                self.pebs.enable = value;
            }
            0x3f2 => {
                within(DATA_CONFIG_BITS);
                self.pebs.data_config = value;
            }
            0x600 => {
                assert_eq!((value << 16) as i64 >> 16, value as i64, "#GP: IA32_DS_AREA {value:#x}");
                self.pebs.ds_area = value;
            }
            0x30c | 0x329 => self.metrics.write(number, value),
            0x186..=0x189 => {
                self.set_adaptive(number - 0x186, value & SELECT_ADAPTIVE != 0);
                self.counters.write(number, value & !SELECT_ADAPTIVE);
            }
            0x38d => {
                (0..3).for_each(|at| self.set_adaptive(32 + at, value >> (32 + 4 * at) & 1 != 0));
                self.slots_field = value & SLOTS_FIELD;
                self.counters.write(number, value & !(FIXED_ADAPTIVE | SLOTS_FIELD));
            }
            0x38f => {
                self.topdown_control = value & TOPDOWN;
                self.counters.write(number, value & !TOPDOWN);
            }
            0x390 => {
                self.topdown_status &= !value;
                self.pebs.is_full &= value & STATUS_BUFFER == 0;
                self.counters.write(number, value & !(TOPDOWN | STATUS_BUFFER));
            }
            _ if self.lbr.read(number).is_some() => self.lbr.write(number, value),
            _ => self.counters.write(number, value),
        }
    }
}
