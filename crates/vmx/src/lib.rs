// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel VMX as data: the VMCS's fields, what a CPU can be asked for, what an exit means, why an entry fails.
//!
//! Source throughout: Intel 64 and IA-32 Architectures Software Developer's Manual (SDM), volume 3, order number 325384,
//! in the numbering of its revisions 081 and later, where "VM Entries" is chapter 27 (in earlier ones every chapter from
//! 24 to 30 has a number less by one), and appendices A to C. No instruction is executed here: whoever reads and writes
//! a VMCS passes its [`Vmcs`].
//!
//! | module | what |
//! |---|---|
//! | [`control`] | the controls by their names, and sets of them |
//! | [`field`] | the VMCS's fields by width, with the controls without which each does not exist |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod control;
pub mod field;

pub use control::{Control, Controls};
pub use field::{Field, Field16, Field32, Field64, FieldNatural, Vmcs};
