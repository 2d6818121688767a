// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI functions: which exist, the cost of the scan, and which need not be checked before a guest runs.
//!
//! A configuration access is slow (it waits for a link, and in an emulator it leaves the virtual machine), and a boot
//! that checks every slot of every bus does thousands. What is checked, and when, is a policy over one code path:
//!
//! | [`Filter`] | before the guests run | after |
//! |---|---|---|
//! | `all` | every function is probed: the baseline | nothing |
//! | `allow:…` | only functions that a pattern names; by address, nothing else is even touched | nothing |
//! | `lazy` | nothing | every function, one at a time, by a CPU that has nothing else to do |
//!
//! [`Scan`] does the work in steps of one function, so that the caller is never away for long. Every access goes
//! through [`ConfigSpace`] and is counted: a [`Function`] states the cost of its scan.
//!
//! A function's registers are untrusted input: capability lists that loop, bridges that lead back, functions that never
//! answer or vanish while they are read leave a [`Problem`] and cost a bounded number of accesses.
//!
//! The crate `pci_types` reads headers too; its access trait is `unsafe` to implement and its capability walk has no
//! bound, and the handful of registers needed here is smaller than that seam.
//!
//! | module | content | source |
//! |---|---|---|
//! | [`address`] | bus, device, function; how a register is reached | PCI Local Bus 3.0, 3.2.2.3.2; PCI Express Base 5.0, 7.2.2 |
//! | [`filter`] | the policies and their patterns | |
//! | [`scan`] | the walk over buses and slots | PCI-to-PCI Bridge 1.2, chapter 3 |
//! | [`function`] | one function's header | PCI Local Bus 3.0, chapter 6 |
//! | [`bar`], [`capability`] | its address ranges; its capability list | 6.2.5.1; 6.7 |
//! | [`selector`] | an operator's choice of one function | |
//! | [`groups`], [`acs`], [`extended`] | functions that must have one owner, since the IOMMU does not isolate them from each other | PCI Express Base 5.0, 6.12, 7.6, 7.7.7 |
//! | [`assignments`] | the guests that functions are assigned to: configured, and changed since | |
//! | [`sizing`], [`reset`] | the ranges' lengths, and a reset between two owners: for a function that becomes a guest's | 6.2.5.1; PCI Express Base 5.0, 6.6.2 |
//! | [`sriov`] | the virtual functions that a function can have | PCI Express Base 5.0, 9.3.3 |
//! | [`line`] | the function behind an I/O APIC's input, and the check for a line that no driver serves | 2.2.6 |
//! | [`message`] | MSI and MSI-X of a function that is a guest's | 6.8 |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod acs;
pub mod address;
pub mod assignments;
pub mod bar;
pub mod capability;
mod config;
pub mod extended;
pub mod filter;
pub mod function;
pub mod groups;
pub mod line;
pub mod message;
mod problem;
pub mod reset;
pub mod scan;
pub mod selector;
pub mod sizing;
pub mod sriov;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod testing;

pub use address::{Bdf, EcamRange, Route, route};
pub use assignments::{AssignError, Assignment, Changes};
pub use config::{ConfigSpace, ConfigWrite, Cost};
pub use filter::{Filter, FilterError, Pattern};
pub use function::{Function, Identity, Kind};
pub use groups::Groups;
pub use problem::{Problem, Problems};
pub use scan::{Scan, Step};
pub use selector::{SelectError, Selector, SelectorError};
