// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's counters as an observer sees them.

use crate::Counter;
use crate::event::{Modes, What};

/// A counter that the guest has given an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Number of the counter in the guest's global registers.
    pub counter: Counter,
    /// Its event.
    pub what: What,
    /// In which modes.
    pub modes: Modes,
    /// Its state.
    pub counts: Counts,
    /// Value that the guest reads.
    pub value: u64,
    /// Number of its overflows, since this image runs the guest.
    pub overflows: u64,
}

/// State of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// The guest has stopped it.
    Stopped,
    /// It counts.
    Truly,
    /// The guest wants it to, and it stands still: it may not count that, or nothing here can.
    Never,
}
