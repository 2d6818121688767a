// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine checks: which errors of the hardware are corrected, which cost one guest, and which end the host.
//!
//! Sources: AMD APM vol. 2, chapter 9 (rev 3.42), and the CPU programming references for scalable MCA; Intel SDM
//! vol. 3, chapter 16 ("Machine-check architecture").
//!
//! ```text
//! boot ──► Unit::prepare      reports and clears the banks' errors, enables all banks
//! #MC ───► Unit::exception ─┬─ Fatal ───► the host ends, the banks keep their errors for the next boot's report
//!                           └─ found ───► Pending ──► the CPU's loop: which owner has that memory?
//! timer ─► Unit::poll ──────── found ──────────────►   a guest: it ends; none: retired; the host: the host ends
//! ```
//!
//! Registers are behind the trait [`Registers`], so that banks are a model in tests.
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

mod exception;
mod pending;
mod recovery;
mod registers;
mod reports;
mod retired;
mod severity;
mod status;
mod unit;
mod why;

pub use exception::{Context, Fatal, Judgement};
pub use pending::{Damage, Pending};
pub use recovery::Recovery;
pub use registers::{MCG_STATUS, Registers};
pub use reports::Reports;
pub use retired::Retired;
pub use severity::Severity;
pub use status::Status;
pub use unit::{Found, Unit};
pub use why::Why;

#[cfg(test)]
mod tests;
