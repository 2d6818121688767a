// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one virtual processor knows of the others.

/// What the other virtual processors of a guest do, seen from one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// One of them runs, or an interrupt can wake it.
    pub can_run: bool,
    /// One of them has halted with interrupts off.
    pub halted_for_good: bool,
}
