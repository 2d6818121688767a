// SPDX-License-Identifier: MIT OR Apache-2.0
//! Activity of a CPU as its counters see it.

use super::lbr::Branch;

/// Activity of a CPU in one go.
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

/// Activity of a CPU in one go, and its place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity<'a> {
    /// The part that counters see.
    pub run: Run,
    /// The instruction's address.
    pub address: u64,
    /// The time stamp counter.
    pub stamp: u64,
    /// Branches taken, in their order.
    pub branches: &'a [Branch],
    /// Issue slots, by what became of them.
    pub slots: [u64; 8],
}
