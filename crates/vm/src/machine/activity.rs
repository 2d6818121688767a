// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states a vCPU is in beside running.

/// Activity of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It executes instructions.
    Running,
    /// It has halted and waits for an interrupt.
    Halted,
    /// It has halted with interrupts disabled: only NMI and INIT reach it.
    HaltedForGood,
    /// It waits for a start-up interrupt.
    WaitingForStartup,
}
