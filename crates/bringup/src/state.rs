// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of a CPU, and its transitions.

use core::fmt;

/// The four phases that the boot CPU waits for, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The first instruction of ours.
    FirstSign,
    /// Its own tables, stacks and interrupt controller.
    Initialisation,
    /// Its time stamp counter agrees with the boot CPU's, or the difference is known.
    TscSync,
    /// It takes work.
    Online,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::FirstSign, Self::Initialisation, Self::TscSync, Self::Online];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FirstSign => "first sign of life",
            Self::Initialisation => "initialisation",
            Self::TscSync => "TSC synchronisation",
            Self::Online => "going online",
        })
    }
}

/// State of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It has not been woken.
    Offline,
    /// It was ordered to start, and has given no sign yet.
    Kicked,
    /// It runs our code.
    Alive,
    /// It has prepared itself.
    Initialised,
    /// Its clock can be trusted as far as is known.
    TscSynchronised,
    /// It takes work.
    Online,
    /// It waits at its mailbox for the next image.
    Parked,
    /// Given up in this phase. Final: should it wake after all, it halts.
    Dead(Phase),
}

impl State {
    /// Returns whether a CPU in this state may get into `next`.
    pub const fn may_become(self, next: Self) -> bool {
        use State::{Alive, Dead, Initialised, Kicked, Offline, Online, Parked, TscSynchronised};
        match (self, next) {
            (Offline | Parked, Kicked)
            | (Kicked, Alive)
            | (Alive, Initialised)
            | (Initialised, TscSynchronised)
            | (TscSynchronised, Online)
            | (Online, Parked | Offline)
            | (Offline, Parked) => true,
            (from, Dead(phase)) => matches!(from.awaited(), Some(awaited) if awaited as u32 == phase as u32),
            _ => false,
        }
    }

    /// Returns the phase that the boot CPU waits for of a CPU in this state; `None` where it waits for none.
    pub const fn awaited(self) -> Option<Phase> {
        match self {
            Self::Kicked => Some(Phase::FirstSign),
            Self::Alive => Some(Phase::Initialisation),
            Self::Initialised => Some(Phase::TscSync),
            Self::TscSynchronised => Some(Phase::Online),
            Self::Offline | Self::Online | Self::Parked | Self::Dead(_) => None,
        }
    }

    /// Returns whether bring-up is over for a CPU in this state.
    pub const fn has_final_clock(self) -> bool {
        matches!(self, Self::Online | Self::Dead(_))
    }

    pub(crate) const fn to_word(self) -> u32 {
        match self {
            Self::Offline => 0,
            Self::Kicked => 1,
            Self::Alive => 2,
            Self::Initialised => 3,
            Self::TscSynchronised => 4,
            Self::Online => 5,
            Self::Parked => 6,
            Self::Dead(phase) => 8 + phase as u32,
        }
    }

    /// A word of no state counts as a CPU that never gave a sign of life: nothing relies on it.
    pub(crate) const fn from_word(word: u32) -> Self {
        match word {
            0 => Self::Offline,
            1 => Self::Kicked,
            2 => Self::Alive,
            3 => Self::Initialised,
            4 => Self::TscSynchronised,
            5 => Self::Online,
            6 => Self::Parked,
            9 => Self::Dead(Phase::Initialisation),
            10 => Self::Dead(Phase::TscSync),
            11 => Self::Dead(Phase::Online),
            _ => Self::Dead(Phase::FirstSign),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offline => f.write_str("offline"),
            Self::Kicked => f.write_str("kicked"),
            Self::Alive => f.write_str("alive"),
            Self::Initialised => f.write_str("initialised"),
            Self::TscSynchronised => f.write_str("TSC-synchronised"),
            Self::Online => f.write_str("online"),
            Self::Parked => f.write_str("parked"),
            Self::Dead(phase) => write!(f, "dead (waited in vain for: {phase})"),
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
