// SPDX-License-Identifier: MIT OR Apache-2.0
//! x86-64 page tables, host and nested: mapping decided here, memory supplied by the caller.
//!
//! Four levels of 512 entries (AMD APM vol 2, section 5.3) translate 48 bits of address. [`Tables`] holds the root and
//! the rules; where the tables lie and how they are reached is behind [`TableMemory`], so that everything here runs on
//! a laptop. The format of an entry is behind [`Format`]: [`Host`] for the CPU's own tables, [`Nested`] for those of
//! SVM's nested paging (section 15.25). A format with other bits is one more implementation (EPT: `vmx`).
//!
//! Three promises, which the property tests hold it to:
//! - A request is carried out whole or refused whole: a refused one has changed no translation.
//! - The largest pages that alignment, length and the CPU allow are used; a part of one that is unmapped or
//!   protected on its own is split off, translations around it unchanged.
//! - A table that maps nothing is freed, so `free_all` and unmapping everything both return every frame.
//!
//! Nothing here touches the TLB. After `unmap` or `protect` the caller invalidates, on every CPU that may use these
//! tables, before it gives a freed table or the unmapped memory to another owner.
#![no_std]

#[cfg(test)]
extern crate std;

mod change;
mod error;
mod format;
mod mapping;
mod memory;
mod tables;
mod walk;

pub use error::MapError;
pub use format::{Entry, Flags, Format, Host, Nested};
pub use mapping::Mapping;
pub use memory::TableMemory;
pub use tables::Tables;
pub use units::{PageSize, PhysAddr};

#[cfg(test)]
mod tests;
