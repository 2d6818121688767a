// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speculation vulnerabilities as data: which of them a CPU has, the measures against each, and the name of its status.
//!
//! The input is the contents of CPUID and a few MSRs, as plain values ([`Cpu`]). [`assess`] returns a [`Status`] for
//! each row of [`TABLE`] and the [`Actions`] that the hypervisor carries out. No instruction is executed here.
//!
//! | module | content |
//! |---|---|
//! | [`cpu`] | the facts about a CPU |
//! | [`table`] | one row per vulnerability, with its source; a column per vendor |
//! | [`actions`] | everything that can be done |
//! | [`registers`] | the registers behind that, and the order in which each CPU's are written |
//! | `guest` | the features of the CPU that guests may be shown |
//! | [`switch`] | which world switch a vCPU needs, and SPEC_CTRL in guest and host |
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
pub mod registers;
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
