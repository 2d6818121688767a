// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speculation vulnerabilities as data: which of them a CPU has, what is done about each, and what that is called.
//!
//! The input is what CPUID and a few MSRs say, as plain values ([`Cpu`]). [`assess`] returns a [`Status`] for each row
//! of [`TABLE`] and the [`Actions`] that the hypervisor carries out. No instruction is executed here.
//!
//! | module | content |
//! |---|---|
//! | [`cpu`] | the facts about a CPU |
//! | [`table`] | one row per vulnerability, with its source; a column per vendor |
//! | [`actions`] | everything that can be done |
//! | `guest` | what guests may be shown of the CPU |
//! | [`switch`] | which world switch a vCPU needs, and what SPEC_CTRL holds in guest and host |
//! | [`barrier`] | when a CPU changes from one guest to another |
//! | [`smt`] | which threads run guests |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod actions;
mod amd;
pub mod barrier;
pub mod cpu;
mod guest;
mod microcode;
pub mod smt;
mod status;
pub mod switch;
pub mod table;

#[cfg(test)]
mod tests;

pub use actions::Actions;
pub use cpu::{Cpu, Feature, Vendor};
pub use smt::Smt;
pub use status::Status;
pub use table::{Assessment, Mode, ROWS, TABLE, assess};
