// SPDX-License-Identifier: MIT OR Apache-2.0
//! Summary of a bring-up.

use alloc::vec::Vec;

use crate::state::Phase;

/// Summary of a bring-up. Each CPU's waits are in its cell ([`crate::Waits`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// CPUs online, the boot CPU not counted.
    pub online: u32,
    /// Those given up, with the phase that they were waited for in.
    pub dead: Vec<(u32, Phase)>,
    /// Time of the first kick.
    pub began: u64,
    /// Time at which the boot CPU had nothing left to do but wait; sending the start-up interrupts, where they were
    /// left until then, is part of it.
    pub wait_began: u64,
    /// Ticks spent kicking, the rest of the delay after INIT included.
    pub kick_ticks: u64,
    /// Ticks spent waiting.
    pub wait_ticks: u64,
    /// Ticks from the first kick until no CPU was waited for: more than the two before where the boot CPU
    /// did something else in between.
    pub total_ticks: u64,
}
