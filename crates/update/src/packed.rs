// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of guests with the state in which they were packed for the new image: an update is refused if one has
//! changed.

use core::fmt;

use handover::layout::guests::{Guest, guest_flag};

/// The hand-over version since which a guest that is held for a reader is handed over as such. An older reader keeps
/// the guest paused, as the operator's pause.
const HELD_SINCE: u32 = 4;

/// A guest's run as its flags show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Root of its nested page tables.
    pub nested_root: u64,
    /// Its vCPUs stand still.
    pub is_paused: bool,
    /// It is about to end.
    pub is_ending: bool,
}

/// A guest as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The number of its state; `None` where a guest in it cannot be handed over.
    pub state: Option<u32>,
    /// Its run, if there is one.
    pub run: Option<Run>,
    /// An operator's order is under way that changes it.
    pub has_orders: bool,
}

/// Returns the flags of a guest for a reader of this version; `is_held`: it is paused for a reader.
#[must_use]
pub fn flags(run: Option<Run>, is_held: bool, version: u32) -> u32 {
    let held = if version >= HELD_SINCE && is_held { guest_flag::IS_HELD } else { 0 };
    run_flags(run) | held
}

fn run_flags(run: Option<Run>) -> u32 {
    let Some(run) = run else { return 0 };
    guest_flag::HAS_RUN | if run.is_paused { guest_flag::STANDS_STILL } else { 0 }
}

/// A change of a guest since it was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its run has ended, has been reset, or has started.
    Run,
    /// It is about to end.
    Ends,
    /// It was paused, or resumed.
    Pause,
    /// Its state, such as whether its kernel panicked.
    State,
    /// The operator's order for it is not carried out yet.
    Order,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "started, ended or was reset",
            Self::Ends => "is about to end",
            Self::Pause => "was paused or resumed",
            Self::State => "changed its state",
            Self::Order => "was given an order",
        })
    }
}

impl Now {
    /// Returns what has changed of the guest since it was packed, the greatest change first. A reader that has come or
    /// gone is no change: its run stands still, or does not.
    #[must_use]
    pub fn change_since(&self, packed: &Guest) -> Option<Change> {
        let flags = packed.flags.get() & !guest_flag::IS_HELD;
        let changes = [
            (self.run.map_or(0, |run| run.nested_root) != packed.nested_root.get(), Change::Run),
            (self.run.is_some_and(|run| run.is_ending), Change::Ends),
            (run_flags(self.run) != flags, Change::Pause),
            (self.state != Some(packed.state.get()), Change::State),
            (self.has_orders, Change::Order),
        ];
        changes.into_iter().find_map(|(has_changed, change)| has_changed.then_some(change))
    }
}
