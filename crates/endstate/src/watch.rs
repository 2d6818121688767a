// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs of the owner: the time until the reboot, and keys on the console.

use crate::rest::Action;

/// The keys, for people.
pub const HELP: &str = "keys: b reboot now, l print the log again, r registers, h help";

/// A command to the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The machine is reset.
    Reboot,
    /// The log is printed from its beginning.
    PrintLog,
    /// The registers are printed, and the place at which every other CPU stopped.
    PrintRegisters,
    /// The keys are printed.
    Help,
}

impl Command {
    /// Returns the command of a key. Any other key does nothing: a line full of noise must not reboot a machine by
    /// accident more often than noise holds the one letter.
    pub fn of_key(key: u8) -> Option<Self> {
        match key {
            b'b' => Some(Self::Reboot),
            b'l' => Some(Self::PrintLog),
            b'r' => Some(Self::PrintRegisters),
            b'h' | b'?' => Some(Self::Help),
            _ => None,
        }
    }
}

/// The owner's watch over a host that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    reboot_at: Option<u64>,
}

impl Watch {
    /// From `now` on, in ticks of a clock of `ticks_per_second`.
    pub fn new(action: Action, now: u64, ticks_per_second: u64) -> Self {
        let Action::Reboot { after_seconds } = action else { return Self { reboot_at: None } };
        let ticks = ticks_per_second.saturating_mul(u64::from(after_seconds));
        Self { reboot_at: Some(now.saturating_add(ticks)) }
    }

    /// Returns when the owner must be awake again, if ever.
    pub fn alarm(&self) -> Option<u64> {
        self.reboot_at
    }

    /// Returns the command that is due by the clock.
    pub fn due(&self, now: u64) -> Option<Command> {
        self.reboot_at.filter(|&at| now >= at).map(|_| Command::Reboot)
    }
}
