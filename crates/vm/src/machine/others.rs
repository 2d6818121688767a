// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's view of the guest's other vCPUs.

/// Activity of the guest's other vCPUs, seen from one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Others {
    /// One of them runs, or an interrupt can wake it.
    pub can_run: bool,
    /// One of them has halted with interrupts disabled.
    pub halted_for_good: bool,
    /// One that has halted so may be woken by another's hypercall.
    pub may_be_woken: bool,
}
