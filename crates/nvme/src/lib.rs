// SPDX-License-Identifier: MIT OR Apache-2.0
//! The serial number of an NVMe controller: it distinguishes disks of one model, wherever they are plugged in.
//!
//! [`serial`] resets the controller, enables it with an admin queue of two entries, sends one command, Identify
//! Controller, and disables it again. Interrupts stay masked; completion is polled, and every wait has an end. The
//! controller's registers and answers are untrusted.
//!
//! | item | source |
//! |---|---|
//! | registers, enabling, disabling | NVM Express Base 2.0, sections 3.1.3, 3.5.1, 3.6.1 |
//! | queue entries | 3.3.3.1, 3.3.3.2 |
//! | Identify Controller | 5.17.2.1, figure 275 |
//!
//! Drivers of whole controllers (`nvme`, `nvme-driver`) wait without an end for controllers that do not answer, and own
//! memory by raw addresses.
#![no_std]

#[cfg(test)]
extern crate std;

mod identify;
mod problem;
mod registers;
mod serial;

pub use identify::{DMA_BYTES, serial};
pub use problem::Problem;
pub use registers::{Memory, Registers};
pub use serial::Serial;

#[cfg(test)]
mod model;
