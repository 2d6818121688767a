// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of accesses and messages.

use crate::devices::InterruptMessage;

/// The effect of an access on the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Nothing; but [`super::Lapic::pending`] may have changed.
    None,
    /// Take this message to every local APIC that it [matches](super::Lapic::matches).
    Send(InterruptMessage),
    /// Notify the I/O APIC that this level-triggered vector has ended.
    EndOfInterrupt(u8),
    /// [`super::Lapic::timer_deadline`] may have changed.
    TimerChanged,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acceptance {
    /// Its vector is requested now: the CPU is to check [`super::Lapic::pending`].
    Requested,
    /// The CPU gets an NMI.
    Nmi,
    /// The CPU gets an INIT.
    Init,
    /// The CPU, if it waits for one, starts at this page of the first MiB.
    Startup(u8),
    /// Nothing happens: the APIC is disabled, the vector is illegal, or the machine has no such thing.
    Ignored,
}
