// SPDX-License-Identifier: MIT OR Apache-2.0
//! The performance counters of this CPU, by their vendor's registers.

use crate::apic::{self, Register};
use crate::cpu;

/// Bits of a counter.
pub const WIDTH_MASK: u64 = (1 << 48) - 1;
/// Select: the counter counts.
pub const ENABLED: u64 = 1 << 22;
/// Select: all modes, enabled.
pub const COUNTS: u64 = 3 << 16 | ENABLED;
/// Select: an overflow interrupts.
pub const INTERRUPTS: u64 = 1 << 20;
/// The local vector: nothing comes.
pub const MASKED: u32 = 1 << 16;
/// The local vector: an NMI comes.
pub const NMI: u32 = 4 << 8;

/// Vendor of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Intel's, version 2.
    Intel,
    /// AMD's, version 2.
    Amd,
}

impl Unit {
    /// Returns what CPUID reports.
    pub fn find() -> Option<Self> {
        let monitoring = if cpu::cpuid(0x8000_0000)[0] >= 0x8000_0022 { cpu::cpuid(0x8000_0022)[0] } else { 0 };
        if cpu::cpuid(0xa)[0] & 0xff >= 2 {
            Some(Self::Intel)
        } else if monitoring & 1 != 0 {
            Some(Self::Amd)
        } else {
            None
        }
    }

    /// Returns how many general counters.
    pub fn counters(self) -> u32 {
        match self {
            Self::Intel => cpu::cpuid(0xa)[0] >> 8 & 0xff,
            Self::Amd => cpu::cpuid(0x8000_0022)[1] & 0xf,
        }
    }

    /// A counter's select.
    pub fn select(self, counter: u32) -> u32 {
        match self {
            Self::Intel => 0x186 + counter,
            Self::Amd => 0xc001_0200 + 2 * counter,
        }
    }

    /// A counter, written whole.
    pub fn counter(self, counter: u32) -> u32 {
        match self {
            Self::Intel => 0x4c1 + counter,
            Self::Amd => 0xc001_0201 + 2 * counter,
        }
    }

    /// The global control.
    pub fn control(self) -> u32 {
        match self {
            Self::Intel => 0x38f,
            Self::Amd => 0xc000_0301,
        }
    }

    /// The global status.
    pub fn status(self) -> u32 {
        match self {
            Self::Intel => 0x38e,
            Self::Amd => 0xc000_0300,
        }
    }

    /// Returns what clears it.
    pub fn clear(self) -> u32 {
        match self {
            Self::Intel => 0x390,
            Self::Amd => 0xc000_0302,
        }
    }

    /// The event of cycles.
    pub fn cycles(self) -> u64 {
        match self {
            Self::Intel => 0x3c,
            Self::Amd => 0x76,
        }
    }

    /// A counter counts cycles, and interrupts after so many.
    pub fn start(self, counter: u32, period: u64) {
        cpu::write_msr(self.select(counter), 0);
        cpu::write_msr(self.counter(counter), (WIDTH_MASK + 1 - period) & WIDTH_MASK);
        cpu::write_msr(self.select(counter), self.cycles() | COUNTS | INTERRUPTS);
    }

    /// A counter's value.
    #[inline(always)]
    pub fn read(self, counter: u32) -> u64 {
        cpu::read_counter(counter)
    }

    /// As after power-on.
    pub fn reset(self) {
        for counter in 0..self.counters() {
            cpu::write_msr(self.select(counter), 0);
            cpu::write_msr(self.counter(counter), 0);
        }
        cpu::write_msr(self.control(), (1 << self.counters()) - 1);
        cpu::write_msr(self.clear(), (1 << self.counters()) - 1);
        if self == Self::Intel {
            cpu::write_msr(0x38d, 0);
            cpu::write_msr(0x1d9, 0);
        }
        apic::write(Register::Performance, MASKED);
    }
}
