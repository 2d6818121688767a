// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as the protocol sees it, on the CPU that runs it: the hypervisor implements it with a few instructions
//! each, tests with simulated CPUs.
//!
//! Longer work (to save guests, to lend the CPU to the new image) is no call: the state machines request it by the act
//! that they return, and receive the result. So a test can stop a CPU before, amid and after each of them.

use crate::trial::Stamp;

/// A CPU by its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number in the old image.
    pub index: u32,
    /// Its APIC identifier.
    pub apic_id: u32,
}

/// The reason why a CPU does not go on in the new image, as far as this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An NMI has ended the new image's time on this CPU before anything was decided: it hangs, or has waited too long.
    TimedOut,
    /// The new image has given the CPU up, or has raised an exception; the CPU's page holds the reason.
    Failed,
}

/// The clock of all CPUs.
pub trait Clock {
    /// Returns the time in ticks.
    fn now(&self) -> u64;
    /// Microseconds in ticks.
    fn ticks(&self, us: u64) -> u64;
}

/// The machine, seen by one CPU.
pub trait Platform: Clock {
    /// Interrupts the CPU, which then leaves its guest and finds out what is to be done.
    fn interrupt(&self, cpu: Cpu);
    /// Sends the CPU an NMI.
    fn send_nmi(&self, cpu: Cpu);
    /// Notes on the calling CPU's page that it has come to this step now.
    fn stamp(&self, step: Stamp);
    /// Notes a problem of the calling CPU. The first one is reported.
    fn note(&self, problem: Problem);
}
