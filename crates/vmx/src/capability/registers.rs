// SPDX-License-Identifier: MIT OR Apache-2.0
//! Capability MSRs that are no words of controls.

use bitfield_struct::bitfield;

/// IA32_VMX_BASIC (section A.1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Basic {
    /// Revision identifier that a VMCS's region begins with.
    #[bits(31)]
    pub revision: u32,
    __: bool,
    /// Bytes of a VMCS's region, at most 4096.
    #[bits(13)]
    pub region_bytes: u16,
    #[bits(3)]
    __: u8,
    /// Addresses in a VMCS have 32 bits.
    pub has_narrow_addresses: bool,
    /// SMM can have a monitor of its own.
    pub has_dual_monitor: bool,
    /// Memory type for a VMCS: 0 uncacheable, 6 write-back.
    #[bits(4)]
    pub memory_type: u8,
    /// Exits for INS and OUTS describe the instruction.
    pub reports_string_io: bool,
    /// The TRUE MSRs exist.
    pub has_true_controls: bool,
    /// A hardware exception may be injected with an error code or without, whatever its vector.
    pub has_free_error_codes: bool,
    #[bits(7)]
    __: u8,
}

/// IA32_VMX_MISC (section A.6).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Misc {
    /// The preemption timer counts down by one when this bit of the time stamp counter changes.
    #[bits(5)]
    pub timer_shift: u8,
    /// Exits store EFER.LMA into the control "IA-32e mode guest".
    pub stores_long_mode: bool,
    /// Activity state HLT.
    pub has_halt: bool,
    /// Activity state shutdown.
    pub has_shutdown: bool,
    /// Activity state wait-for-SIPI.
    pub has_wait_for_sipi: bool,
    #[bits(7)]
    __: u8,
    /// CR3-target values.
    #[bits(9)]
    pub cr3_targets: u16,
    /// Lists of MSRs should have no more than 512 × (this + 1) entries.
    #[bits(3)]
    pub msr_list: u8,
    __: bool,
    /// VMWRITE can write fields with information about exits.
    pub writes_information: bool,
    /// A software interrupt or exception can be injected with an instruction length of 0.
    pub injects_without_length: bool,
    __: bool,
    /// Revision identifier of the dual monitor.
    pub monitor_revision: u32,
}

/// IA32_VMX_EPT_VPID_CAP (section A.10).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct EptVpid {
    /// EPT entries can allow execution alone.
    pub execute_only: bool,
    #[bits(5)]
    __: u8,
    /// Page walks of 4 levels.
    pub walks_4_levels: bool,
    /// Page walks of 5 levels.
    pub walks_5_levels: bool,
    /// EPT's own structures can be uncacheable.
    pub uncacheable: bool,
    #[bits(5)]
    __: u8,
    /// EPT's own structures can be write-back.
    pub write_back: bool,
    __: bool,
    /// Pages of 2 MiB.
    pub pages_2_mib: bool,
    /// Pages of 1 GiB.
    pub pages_1_gib: bool,
    #[bits(2)]
    __: u8,
    /// INVEPT.
    pub invept: bool,
    /// Accessed and dirty flags.
    pub accessed_and_dirty: bool,
    /// EPT violations report more about the guest's page.
    pub advanced_violations: bool,
    /// Supervisor shadow-stack control.
    pub supervisor_shadow_stack: bool,
    __: bool,
    /// INVEPT of one context.
    pub invept_single: bool,
    /// INVEPT of all contexts.
    pub invept_all: bool,
    #[bits(5)]
    __: u8,
    /// INVVPID.
    pub invvpid: bool,
    #[bits(7)]
    __: u8,
    /// INVVPID of one address.
    pub invvpid_address: bool,
    /// INVVPID of one context.
    pub invvpid_single: bool,
    /// INVVPID of all contexts.
    pub invvpid_all: bool,
    /// INVVPID of one context but for global translations.
    pub invvpid_single_not_global: bool,
    #[bits(20)]
    __: u32,
}
