// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of a processor's performance counters: registers as Intel's and AMD's manuals have them, over counters that count
//! exactly what a test lets the processor do. [`IntelCore`] has PEBS, last branch records and top-down metrics beside them.
//!
//! No cost is modelled and nothing is sampled: what the model is for is whether counts are kept, to the last one. A write that a
//! processor would refuse is a failed test.

mod amd;
mod intel;
mod intel_core;
mod lbr;
mod pebs;
#[cfg(test)]
mod tests;
mod topdown;

pub use amd::{AmdPmu, Generation};
pub use intel::IntelPmu;
pub use intel_core::{Activity, IntelCore};
pub use lbr::{Branch, Kind};
pub use pebs::Linear;

/// What a processor does in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Run {
    /// Cycles.
    pub cycles: u64,
    /// Ticks of the time stamp counter.
    pub reference_cycles: u64,
    /// Instructions.
    pub instructions: u64,
    /// The vendor's event of [`VENDOR_EVENT`].
    pub vendor: u64,
    /// At privilege level 0.
    pub is_kernel: bool,
    /// In a guest.
    pub is_guest: bool,
}

/// Event select and unit mask of an event that is nothing in particular.
pub const VENDOR_EVENT: (u16, u8) = (0xd1, 0x20);

/// The counters' width in bits.
const WIDTH_BITS: u32 = 48;

/// One counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Register {
    value: u64,
}

impl Register {
    /// Counts; says whether it has overflowed.
    fn advance(&mut self, more: u64) -> bool {
        let sum = self.value + more;
        self.value = sum & ((1 << WIDTH_BITS) - 1);
        sum >> WIDTH_BITS != 0
    }

    fn set(&mut self, value: u64) {
        assert_eq!(value >> WIDTH_BITS, 0, "a counter has {WIDTH_BITS} bits: {value:#x}");
        self.value = value;
    }
}

/// Whether a select's mode bits count in this mode (bit 16: user, bit 17: kernel).
fn counts_in_mode(select: u64, run: &Run) -> bool {
    select & if run.is_kernel { 1 << 17 } else { 1 << 16 } != 0
}

/// Event select, 12 bits, and unit mask.
fn number(select: u64) -> (u16, u8) {
    ((select & 0xff) as u16 | (select >> 24 & 0xf00) as u16, (select >> 8) as u8)
}
