// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features of a CPU's SVM.

/// Features of this CPU's SVM (CPUID Fn8000_000A EDX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Address space identifiers, 0 excluded; at least 1.
    pub asids: u32,
    /// Nested paging.
    pub nested_paging: bool,
    /// The CPU saves the address after the exiting instruction (next-RIP save).
    pub next_rip: bool,
    /// The CPU saves the bytes it fetched on a nested page fault.
    pub decode_assists: bool,
    /// TLB entries can be flushed by ASID.
    pub flush_by_asid: bool,
    /// The CPU honours the clean bits.
    pub clean_bits: bool,
    /// The CPU counts PAUSEs before it exits for one.
    pub pause_filter: bool,
    /// VMRUN and #VMEXIT exchange SPEC_CTRL.
    pub virtual_spec_ctrl: bool,
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
            virtual_spec_ctrl: edx & (1 << 20) != 0,
        }
    }
}
