// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown of a guest's counters.

use crate::Counter;
use crate::event::{Modes, What};

/// A counter that the guest has given an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Which: as the guest's global registers number them.
    pub counter: Counter,
    /// What it is to count.
    pub what: What,
    /// In which modes.
    pub modes: Modes,
    /// Whether it counts.
    pub counts: Counts,
    /// What the guest reads there.
    pub value: u64,
    /// How often it has overflowed, since this image runs the guest.
    pub overflows: u64,
}

/// Whether a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// The guest has stopped it.
    Stopped,
    /// It counts.
    Truly,
    /// The guest wants it to, and it stands still: it may not count that, or nothing here can.
    Never,
}
