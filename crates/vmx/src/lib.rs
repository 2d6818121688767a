// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel VMX as data: the VMCS's fields, what a CPU can be asked for, what an exit means, why an entry fails.
//!
//! Source throughout: Intel 64 and IA-32 Architectures Software Developer's Manual (SDM), volume 3, order number
//! 325384, in the numbering in which "VM Entries" is chapter 27; older revisions, in which it is chapter 26, have the
//! numbers of all these chapters less by one. Appendices A to C are the same in both. No instruction is executed here:
//! the caller passes a [`Vmcs`], through which the fields are read and written.
//!
//! | module | contents |
//! |---|---|
//! | [`control`] | the controls by their names, and sets of them |
//! | [`capability`], [`msr`] | a CPU's capabilities and requirements |
//! | [`firmware`] | whether the firmware lets VMX be used |
//! | [`request`] | the controls of a VMCS, resolved from what is asked for and what the CPU allows |
//! | [`exit`], [`reason`] | the causes of exits, and the decoding into [`vm::exit::Exit`] |
//! | [`event`] | interrupts and exceptions on their way into the guest |
//! | [`ept`] | extended page tables, a format for [`paging::Tables`] |
//! | [`permission`] | the I/O and MSR bitmaps |
//! | [`entry`] | the checks of VM entries, each with the rule that it is of |
//! | [`failure`] | why a VMX instruction failed |
//! | [`Settings`] | the controls with which guests run here |
//! | [`vcpu`] | one vCPU: its VMCS, and the registers that it does not hold |
//! | [`field`] | the VMCS's fields by width, with the controls without which each does not exist |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod capability;
pub mod control;
pub mod entry;
pub mod ept;
pub mod event;
pub mod exit;
pub mod failure;
pub mod field;
pub mod firmware;
pub mod msr;
pub mod permission;
pub mod reason;
pub mod request;
mod settings;
#[cfg(test)]
mod testing;
mod unusable;
pub mod vcpu;

pub use capability::Capabilities;
pub use control::{Control, Controls};
pub use exit::Cause;
pub use field::{Access, Field, Field16, Field32, Field64, FieldNatural, Vmcs};
pub use request::Request;
pub use settings::Settings;
pub use unusable::Unusable;
pub use vcpu::Vcpu;
