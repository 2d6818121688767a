// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit of either vendor: the only place that distinguishes them.
//!
//! Memory that firmware reserves for devices (IVMD, RMRR) is one domain for each unit, [`FIRMWARE`], at its own
//! addresses. All functions for which firmware reserves some are attached to it, so that one of them reaches what is
//! reserved for another; none reaches anything else.

mod domains;
mod inputs;
mod interrupts;
mod place;
mod vendor;

pub use domains::GuestDomain;
pub use inputs::SPARES;
pub use place::{FIRMWARE, Place};
pub use vendor::{Notice, Unit};

#[cfg(test)]
mod tests;
