// SPDX-License-Identifier: MIT OR Apache-2.0
//! A counter, and what selects its event.

use super::activity::Run;

/// Event select and unit mask of an event that is nothing in particular.
pub const VENDOR_EVENT: (u16, u8) = (0xd1, 0x20);

/// The counters' width in bits.
pub(super) const WIDTH_BITS: u32 = 48;

/// One counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Register {
    pub value: u64,
}

impl Register {
    /// Counts; returns whether it has overflowed.
    pub fn advance(&mut self, more: u64) -> bool {
        let sum = self.value + more;
        self.value = sum & ((1 << WIDTH_BITS) - 1);
        sum >> WIDTH_BITS != 0
    }

    pub fn set(&mut self, value: u64) {
        assert_eq!(value >> WIDTH_BITS, 0, "a counter has {WIDTH_BITS} bits: {value:#x}");
        self.value = value;
    }
}

/// Returns whether a select's mode bits count in this mode (bit 16: user, bit 17: kernel).
pub(super) fn counts_in_mode(select: u64, run: &Run) -> bool {
    select & if run.is_kernel { 1 << 17 } else { 1 << 16 } != 0
}

/// Returns the event select, 12 bits, and the unit mask.
pub(super) fn number(select: u64) -> (u16, u8) {
    ((select & 0xff) as u16 | (select >> 24 & 0xf00) as u16, (select >> 8) as u8)
}
