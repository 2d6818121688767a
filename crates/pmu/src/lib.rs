// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters: those of the CPU, shared out among their users, and those that a guest sees.
//!
//! ```text
//! guest's registers ─► VirtualPmu ─► Bank: events, on counters ─► Backend ─┬─ soft: time in the guest
//!                      (guest)        (one code path, two policies)        └─ amd ─► Msrs: the CPU, or a model
//!                                         │ assign
//! the host's events ──────────────────► schedule
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `event` | events that are counted, and the modes of the CPU in which they are |
//! | `counter` | counters, sets of them, their width and overflow |
//! | `schedule` | which event gets which counter |
//! | `bank` | the events of one user and the counters that they are on; what a switch saves and restores |
//! | `soft`, `amd` | counters of a CPU that has none, and of AMD's |
//! | `intel` | the numbers of Intel's, which guests see |
//! | `guest` | the registers that a guest sees, by either vendor's manual |
//! | `host` | a host's source of counters: `soft` or `amd`, as one type |
//! | `vcpu` | a vCPU's counters on that |
//! | `host_time` | the host's own, a user beside guests' |
//! | `not_yet_wired` | Intel's CPUs' counters, PEBS, last branch records and top-down metrics: used by no image |
//!
//! Nothing here allocates, and every loop is over the counters of one CPU.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod amd;
pub mod backend;
pub mod bank;
pub mod counter;
pub mod event;
pub mod guest;
pub mod host;
pub mod host_time;
pub mod intel;
pub mod not_yet_wired;
mod refused;
pub mod schedule;
pub mod soft;
pub mod vcpu;
mod vendor;

pub use backend::{Backend, Msrs};
pub use bank::{Bank, Policy, SLOTS};
pub use counter::{Counter, CounterSet, Width};
pub use event::{Event, Modes, What};
pub use host::{Choice, MachineCounters, Registers, Source};
pub use vcpu::VcpuCounters;

#[cfg(test)]
mod tests;
