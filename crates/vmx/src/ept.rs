// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extended page tables (sections 25.6.11 and 29.3): their entries, the pointer to them, and what makes an entry
//! misconfigured.

mod entry;
mod misconfiguration;
mod pointer;

pub use entry::{Ept, MemoryType};
pub use misconfiguration::{Limits, Misconfiguration, check};
pub use pointer::Eptp;

#[cfg(test)]
#[path = "ept_tests.rs"]
mod tests;
