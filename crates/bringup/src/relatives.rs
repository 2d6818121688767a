// SPDX-License-Identifier: MIT OR Apache-2.0
//! Services of CPUs for their neighbours in the tree.

use crate::crew::Crew;
use crate::hardware::Wake;
use crate::state::State;

/// Where CPUs answer their children, wakes those that may wait for a step of this one: its parent and its children.
pub(crate) fn wake_relatives(crew: &Crew<'_>, index: u32, by: &mut impl Wake) {
    if crew.stays_to_answer() {
        let tree = crew.tree();
        tree.children(index).chain([tree.parent(index)]).filter(|&cpu| cpu != 0).for_each(|cpu| crew.rouse(cpu, by));
    }
}

/// Kicks a parked CPU through its mailbox. The CPU that comes second does nothing.
pub(crate) fn release(crew: &Crew<'_>, index: u32, now: u64, release: impl FnOnce(u32) -> bool) {
    if let Some(cell) = crew.cell(index).filter(|cell| cell.state() != State::Offline) {
        // The state first, so that the CPU finds itself expected.
        cell.kick(now);
        // A CPU with an invalid mailbox gives no sign of life: the boot CPU reports it.
        release(index);
    }
}
