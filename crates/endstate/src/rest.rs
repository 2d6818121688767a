// SPDX-License-Identifier: MIT OR Apache-2.0
//! The action after the report, and the idle state of a CPU that has nothing left to do.

/// The action after the report of the host's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The owner spins in delays, interrupts enabled: the baseline, as Linux does.
    Spin,
    /// Every CPU halts, interrupts enabled.
    Halt,
    /// As [`Self::Halt`], and after this time the machine is reset.
    Reboot {
        /// Seconds.
        after_seconds: u32,
    },
    /// The lab's debug exit ends the emulator.
    Exit,
}

/// Idle state of a CPU until the next interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It delays.
    Spin,
    /// It halts.
    Halt,
}

impl Action {
    /// Returns the idle state of the owner or of another CPU. Only the owner ever spins: the CPU that it stopped halts.
    pub fn rest(self, is_owner: bool) -> Rest {
        if self == Self::Spin && is_owner { Rest::Spin } else { Rest::Halt }
    }

    /// Returns it as a number, for storage in a word: 0 to 2, and 3 + seconds.
    pub const fn to_number(self) -> u32 {
        match self {
            Self::Spin => 0,
            Self::Halt => 1,
            Self::Exit => 2,
            Self::Reboot { after_seconds } => after_seconds.saturating_add(3),
        }
    }

    /// Returns the action that a number stands for.
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Spin,
            1 => Self::Halt,
            2 => Self::Exit,
            more => Self::Reboot { after_seconds: more - 3 },
        }
    }
}
