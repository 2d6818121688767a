// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modes of the timer.

/// Mode of the timer, by bits 17 and 18 of its local vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerMode {
    /// Counts down once.
    OneShot,
    /// Counts down again and again.
    Periodic,
    /// Is due when the TSC reaches IA32_TSC_DEADLINE.
    TscDeadline,
    /// The reserved encoding: never due.
    Off,
}

impl TimerMode {
    /// The mode for its encoding.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::OneShot,
            1 => Self::Periodic,
            2 => Self::TscDeadline,
            _ => Self::Off,
        }
    }

    /// Returns whether the timer counts down from the initial count.
    pub const fn counts(self) -> bool {
        matches!(self, Self::OneShot | Self::Periodic)
    }
}
