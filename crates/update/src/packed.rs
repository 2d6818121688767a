// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparison of guests with the state in which they were packed for the new image: an update is refused if one has
//! changed.

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

impl Now {
    /// Returns true if nothing of the guest has changed since it was packed. A reader that has come or gone is no
    /// change: its run stands still, or does not.
    #[must_use]
    pub fn is_as(&self, packed: &Guest) -> bool {
        let flags = packed.flags.get() & !guest_flag::IS_HELD;
        self.state == Some(packed.state.get())
            && self.run.map_or(0, |run| run.nested_root) == packed.nested_root.get()
            && run_flags(self.run) == flags
            && !self.run.is_some_and(|run| run.is_ending)
            && !self.has_orders
    }
}
