// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD-Vi: AMD I/O Virtualization Technology (IOMMU) Specification, 48882 rev 3.10. Sections are that document's.
//!
//! | module | holds | section |
//! |---|---|---|
//! | `registers` | the registers in memory | 3.4 |
//! | `format` | the entries of I/O page tables | 2.2.3 |
//! | `device_table` | an entry per requester: its domain, its interrupts | 2.2.2 |
//! | `interrupts` | the entries of interrupt remapping tables | 2.2.5 |
//! | `commands` | the ring of commands to the unit | 2.4 |
//! | `events` | the ring of what the unit has refused | 2.5 |
//! | `unit` | a unit: what is asked of it | |
//! | `start` | taking a unit over, adopting it, leaving it | |
//!
//! A requester identifier is bus, device and function as a unit sees them. A bridge or firmware (IVRS) may give a
//! function another one, its alias: the caller resolves it, and asks for the alias.
//!
//! Device-side caches (ATS) stay disabled: no entry allows translated requests. A request with a translated address is
//! refused.

mod commands;
mod device_table;
mod events;
mod format;
mod interrupts;
mod registers;
mod start;
mod unit;

pub use events::Event;
pub use format::AmdFormat;
pub use interrupts::MOST_INTERRUPTS;
pub use start::{Requester, Setup};
pub use unit::Unit;

#[cfg(test)]
pub(crate) mod tests;
