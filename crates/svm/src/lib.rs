// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD SVM as data: the control block, what it intercepts, what an exit means.
//!
//! Source throughout: AMD64 Architecture Programmer's Manual, volume 2 (publication 24593, revision 3.42), chapter 15 and
//! appendix B. No instruction is executed here: the hypervisor's `arch::svm` runs VMRUN on what this crate prepares, so
//! the whole set-up and every exit's meaning are tested on the host.
//!
//! | module | what |
//! |---|---|
//! | [`vmcb`] | the virtual machine control block, byte for byte |
//! | [`intercept`] | what makes the processor leave the guest |
//! | [`event`] | interrupts and exceptions on their way into the guest |
//! | [`code`] | exit codes and the decoding into [`vm::exit::Exit`] |
//! | [`permission`] | the I/O and MSR permission maps |
//! | [`vcpu`] | one virtual processor: the control block plus the registers it does not hold |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod code;
pub mod event;
pub mod intercept;
pub mod permission;
pub mod vcpu;
pub mod vmcb;

pub use vcpu::Vcpu;
pub use vmcb::Vmcb;

/// What this processor's SVM can do (CPUID Fn8000_000A EDX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Address space identifiers, 0 excluded; at least 1.
    pub asids: u32,
    /// Nested paging.
    pub nested_paging: bool,
    /// The processor saves where the exiting instruction ends.
    pub next_rip: bool,
    /// The processor saves the bytes it fetched on a nested page fault.
    pub decode_assists: bool,
    /// TLB entries can be flushed by ASID.
    pub flush_by_asid: bool,
    /// The processor honours the clean bits.
    pub clean_bits: bool,
    /// The processor counts PAUSEs before it exits for one.
    pub pause_filter: bool,
}

impl Features {
    /// From the registers of CPUID Fn8000_000A.
    pub const fn from_cpuid(ebx: u32, edx: u32) -> Self {
        Self {
            asids: ebx.saturating_sub(1),
            nested_paging: edx & (1 << 0) != 0,
            next_rip: edx & (1 << 3) != 0,
            clean_bits: edx & (1 << 5) != 0,
            flush_by_asid: edx & (1 << 6) != 0,
            decode_assists: edx & (1 << 7) != 0,
            pause_filter: edx & (1 << 10) != 0,
        }
    }
}
