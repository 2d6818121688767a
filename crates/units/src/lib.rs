// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words every crate shares: physical addresses and ranges, page sizes, sizes for people.
//!
//! This crate holds vocabulary only, no mechanism. A decision lives in the crate that makes it. Types that two crates
//! must agree on, and nothing else, live here.
#![no_std]

#[cfg(test)]
extern crate std;

mod address;
mod page;
mod range;
mod size;

pub use address::{PHYSICAL_LIMIT, PhysAddr};
pub use page::{PAGE_BYTES, PageSize};
pub use range::PhysRange;
pub use size::{ByteSize, GIB, KIB, MIB};

#[cfg(test)]
mod tests;
