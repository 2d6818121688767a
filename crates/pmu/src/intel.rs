// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of Intel's architectural counters, version 2 and later (Intel SDM vol. 3, chapter 20): a guest sees them.
//! The driver of such counters is [`crate::not_yet_wired::driver`].

pub mod number;

/// Event select and unit mask of events that both vendors have (table 20-1).
pub const CYCLES: (u16, u8) = (0x3c, 0);
/// See [`CYCLES`].
pub const INSTRUCTIONS: (u16, u8) = (0xc0, 0);

/// Numbers of the counters of fixed purpose.
pub mod fixed {
    /// Instructions retired.
    pub const INSTRUCTIONS: u8 = 0;
    /// Cycles of the core.
    pub const CYCLES: u8 = 1;
    /// Cycles at the time stamp counter's rate.
    pub const REFERENCE_CYCLES: u8 = 2;
}
