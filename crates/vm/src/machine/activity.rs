// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states a virtual processor is in beside running.

/// What a virtual processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It executes instructions.
    Running,
    /// It has halted and waits for an interrupt.
    Halted,
    /// It has halted with interrupts off: only NMI and INIT reach it.
    Deaf,
    /// It waits for a start-up interrupt.
    WaitingForStartup,
}
