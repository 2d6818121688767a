// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choice of a vCPU's world switch. It is made when a vCPU is loaded and when its SPEC_CTRL changes, so that no exit
//! branches on it.

use crate::Actions;

/// Measures between an exit and the first branch of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Nothing.
    Plain,
    /// Registers are cleared; VERW goes before the entry.
    Cleared,
    /// The same, and the return stack is stuffed.
    Stuffed,
    /// The same, and an IBPB; a division goes before the entry.
    Barrier,
}

/// A world switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Measures after the exit.
    pub exit: Exit,
    /// SPEC_CTRL is written before the entry and after the exit.
    pub exchanges_spec_ctrl: bool,
    /// The guest's time is counted.
    pub counts_time: bool,
}

/// All variants.
pub const VARIANTS: usize = 16;

impl Variant {
    /// Returns the world switch for a vCPU with `guest` as its SPEC_CTRL. `is_virtual`: the CPU exchanges the register
    /// itself, so that in the guest the host's bits apply beside the guest's.
    pub const fn choose(actions: Actions, guest: u64, is_virtual: bool, counts_time: bool) -> Self {
        let exit = if actions.contains(Actions::IBPB_AT_EXIT) {
            Exit::Barrier
        } else if actions.contains(Actions::STUFF_RETURN_STACK) {
            Exit::Stuffed
        } else if actions.intersects(PER_SWITCH) {
            Exit::Cleared
        } else {
            Exit::Plain
        };
        let host = actions.host_spec_ctrl();
        let differs = in_guest(actions, guest) != host || actions.contains(Actions::IBRS_AT_EXIT);
        Self { exit, exchanges_spec_ctrl: differs && !is_virtual, counts_time }
    }

    /// Its place in the table of variants.
    pub const fn index(self) -> usize {
        self.exit as usize * 4 + self.exchanges_spec_ctrl as usize * 2 + self.counts_time as usize
    }
}

/// Measures that [`Exit::Cleared`] is there for.
const PER_SWITCH: Actions = Actions::CLEAR_REGISTERS.union(Actions::CLEAR_BUFFERS).union(Actions::CLEAR_DIVIDER);

/// SPEC_CTRL while a guest runs that has set it to `guest`: IBRS that may stay set stays set, as where the CPU
/// exchanges the register itself.
pub const fn in_guest(actions: Actions, guest: u64) -> u64 {
    if actions.contains(Actions::IBRS_AT_EXIT) { guest } else { guest | actions.host_spec_ctrl() }
}
