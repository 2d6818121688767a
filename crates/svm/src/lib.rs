// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD SVM as data: the control block, its intercepts, the meaning of an exit.
//!
//! Source throughout: AMD64 Architecture Programmer's Manual, volume 2 (publication 24593, revision 3.42), chapter 15
//! and appendix B. No instruction is executed here: the hypervisor's `arch::svm` runs VMRUN on the control blocks that
//! this crate prepares, so the whole set-up and every exit's meaning are tested on the host.
//!
//! | module | content |
//! |---|---|
//! | [`vmcb`] | the virtual machine control block, byte for byte |
//! | [`intercept`] | the events that make the CPU leave the guest |
//! | [`event`] | interrupts and exceptions on their way into the guest |
//! | [`code`] | exit codes and the decoding into [`vm::exit::Exit`] |
//! | [`refusal`] | why VMRUN refuses a control block |
//! | [`permission`] | the I/O and MSR permission maps |
//! | [`vcpu`] | one vCPU: the control block plus the registers it does not hold |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod code;
pub mod event;
mod features;
pub mod intercept;
pub mod permission;
pub mod refusal;
pub mod vcpu;
pub mod vmcb;

pub use features::Features;
pub use vcpu::Vcpu;
pub use vmcb::Vmcb;
