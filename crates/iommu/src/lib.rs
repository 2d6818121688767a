// SPDX-License-Identifier: MIT OR Apache-2.0
//! IOMMUs: which memory a PCI function reaches, and which interrupts it may send.
//!
//! [`Description`] is firmware's description of the machine's IOMMUs (ACPI tables IVRS and DMAR), read as untrusted
//! bytes.
//! A unit of either vendor is driven by registers and by tables in memory, both behind traits ([`Registers`],
//! [`Memory`]), so that everything here runs on the host against a model of the hardware.
//!
//! | vendor | module | source |
//! |---|---|---|
//! | AMD-Vi | `amd` | AMD I/O Virtualization Technology (IOMMU) Specification, 48882 rev 3.10 |
//! | Intel VT-d | `intel` | Intel Virtualization Technology for Directed I/O, rev 4.1 |
//!
//! Promises of both, to which the property tests hold them:
//! - A function reaches what its domain maps, and nothing before it is attached or after it is blocked.
//! - A function sends the interrupts that were opened for it, and no other.
//! - A function that is [stopped](Unit::stop) reaches and sends nothing, in the images that follow, too.
//! - Every wait for the hardware ends: with what was waited for, or with [`Problem::NoAnswer`].
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod amd;
pub mod description;
mod domain;
mod fault;
mod hardware;
pub mod intel;
mod interrupt;
mod problem;
mod redirection;
mod reports;
mod store;
mod storm;
mod unit;

pub use description::{Description, TableFault, TableProblem};
pub use domain::{Domain, DomainId};
pub use fault::{Access, Fault, FaultReason};
pub use hardware::{Memory, Registers, wait_for};
pub use intel::{Spare, SpareWrite};
pub use interrupt::{Interrupt, Message};
pub use problem::Problem;
pub use redirection::{Redirection, Signal};
pub use reports::{MAX_SOURCES, Report, Reports};
pub use store::{MAX_PIECES, Store, Words};
pub use storm::{MAX_STORMING, QUICK_POLL_US, Storm, Storms};
pub use unit::{FIRMWARE, GuestDomain, Notice, Place, SPARES, Unit};
