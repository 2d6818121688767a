// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of the MSRs that describe a CPU's VMX (SDM vol. 4, table 2-2; appendix A), and their names.
#![allow(missing_docs, reason = "the names are the manual's")]

pub const FEATURE_CONTROL: u32 = 0x3a;
pub const BASIC: u32 = 0x480;
pub const PINBASED_CTLS: u32 = 0x481;
pub const PROCBASED_CTLS: u32 = 0x482;
pub const EXIT_CTLS: u32 = 0x483;
pub const ENTRY_CTLS: u32 = 0x484;
pub const MISC: u32 = 0x485;
pub const CR0_FIXED0: u32 = 0x486;
pub const CR0_FIXED1: u32 = 0x487;
pub const CR4_FIXED0: u32 = 0x488;
pub const CR4_FIXED1: u32 = 0x489;
pub const PROCBASED_CTLS2: u32 = 0x48b;
pub const EPT_VPID_CAP: u32 = 0x48c;
pub const TRUE_PINBASED_CTLS: u32 = 0x48d;
pub const TRUE_PROCBASED_CTLS: u32 = 0x48e;
pub const TRUE_EXIT_CTLS: u32 = 0x48f;
pub const TRUE_ENTRY_CTLS: u32 = 0x490;
pub const PROCBASED_CTLS3: u32 = 0x492;

/// The manual's name of one of them.
pub const fn name(msr: u32) -> &'static str {
    match msr {
        FEATURE_CONTROL => "IA32_FEATURE_CONTROL",
        BASIC => "IA32_VMX_BASIC",
        PINBASED_CTLS => "IA32_VMX_PINBASED_CTLS",
        PROCBASED_CTLS => "IA32_VMX_PROCBASED_CTLS",
        EXIT_CTLS => "IA32_VMX_EXIT_CTLS",
        ENTRY_CTLS => "IA32_VMX_ENTRY_CTLS",
        MISC => "IA32_VMX_MISC",
        CR0_FIXED0 => "IA32_VMX_CR0_FIXED0",
        CR0_FIXED1 => "IA32_VMX_CR0_FIXED1",
        CR4_FIXED0 => "IA32_VMX_CR4_FIXED0",
        CR4_FIXED1 => "IA32_VMX_CR4_FIXED1",
        PROCBASED_CTLS2 => "IA32_VMX_PROCBASED_CTLS2",
        EPT_VPID_CAP => "IA32_VMX_EPT_VPID_CAP",
        TRUE_PINBASED_CTLS => "IA32_VMX_TRUE_PINBASED_CTLS",
        TRUE_PROCBASED_CTLS => "IA32_VMX_TRUE_PROCBASED_CTLS",
        TRUE_EXIT_CTLS => "IA32_VMX_TRUE_EXIT_CTLS",
        TRUE_ENTRY_CTLS => "IA32_VMX_TRUE_ENTRY_CTLS",
        PROCBASED_CTLS3 => "IA32_VMX_PROCBASED_CTLS3",
        _ => "an MSR",
    }
}
