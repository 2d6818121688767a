// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual machine control block, byte for byte (appendix B, tables B-1 and B-2).
#![allow(missing_docs, reason = "the names are the manual's")]

use bitfield_struct::bitfield;
use bitflags::bitflags;
use core::mem::{offset_of, size_of};
use vm::vcpu::{AccessRights, Segment, TableRegister};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::intercept::{Misc1, Misc2};

/// In [`Control::interrupt_shadow`]: the guest is in one (section 15.21.5).
pub const INTERRUPT_SHADOW: u64 = 1;

/// One control block: a page the CPU reads at VMRUN and writes at #VMEXIT.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
pub struct Vmcb {
    /// Offset 000h: the control area, with the host's settings and the CPU's exit information.
    pub control: Control,
    /// Offset 400h: the guest's state.
    pub save: Save,
}

impl Vmcb {
    /// A block of zeros: every field must be set before VMRUN accepts it.
    pub fn zeroed() -> Self {
        Self::new_zeroed()
    }
}

/// The control area.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Control {
    pub intercept_cr: u32,
    pub intercept_dr: u32,
    /// [`vm::vcpu::Exceptions`].
    pub intercept_exceptions: u32,
    pub intercept_misc1: Misc1,
    pub intercept_misc2: Misc2,
    pub intercept_misc3: u32,
    reserved_018: [u8; 0x24],
    pub pause_filter_threshold: u16,
    pub pause_filter_count: u16,
    /// Physical address of the I/O permission map, 12 KiB.
    pub iopm_base: u64,
    /// Physical address of the MSR permission map, 8 KiB.
    pub msrpm_base: u64,
    /// Added to the time stamp counter as the guest reads it.
    pub tsc_offset: u64,
    pub asid: u32,
    pub tlb_control: u8,
    reserved_05d: [u8; 3],
    pub virtual_interrupt: VirtualInterrupt,
    pub interrupt_shadow: u64,
    pub exit_code: u64,
    pub exit_info_1: u64,
    pub exit_info_2: u64,
    pub exit_interrupt_info: EventInjection,
    pub nested_control: u64,
    reserved_098: [u8; 0x10],
    pub event_injection: EventInjection,
    /// Physical address of the nested page tables' root.
    pub nested_cr3: u64,
    pub virtualization_extensions: u64,
    pub clean: Clean,
    reserved_0c4: [u8; 4],
    pub next_rip: u64,
    pub bytes_fetched: u8,
    pub instruction_bytes: [u8; 15],
    reserved_0e0: [u8; 0x320],
}

/// The state save area.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Save {
    /// ES, CS, SS, DS, FS, GS.
    pub segments: [VmcbSegment; 6],
    pub gdtr: VmcbSegment,
    pub ldtr: VmcbSegment,
    pub idtr: VmcbSegment,
    pub tr: VmcbSegment,
    reserved_0a0: [u8; 0x2b],
    pub cpl: u8,
    reserved_0cc: [u8; 4],
    pub efer: u64,
    reserved_0d8: [u8; 0x70],
    pub cr4: u64,
    pub cr3: u64,
    pub cr0: u64,
    pub dr7: u64,
    pub dr6: u64,
    pub rflags: u64,
    pub rip: u64,
    reserved_180: [u8; 0x58],
    pub rsp: u64,
    reserved_1e0: [u8; 0x18],
    pub rax: u64,
    pub star: u64,
    pub lstar: u64,
    pub cstar: u64,
    pub sfmask: u64,
    pub kernel_gs_base: u64,
    pub sysenter_cs: u64,
    pub sysenter_esp: u64,
    pub sysenter_eip: u64,
    pub cr2: u64,
    reserved_248: [u8; 0x20],
    pub g_pat: u64,
    pub debug_control: u64,
    reserved_278: [u8; 0x68],
    /// The guest's SPEC_CTRL, where the CPU exchanges it.
    pub spec_ctrl: u64,
    reserved_2e8: [u8; 0x918],
}

const _: () = {
    assert!(size_of::<Vmcb>() == 4096);
    assert!(offset_of!(Control, iopm_base) == 0x40);
    assert!(offset_of!(Control, asid) == 0x58);
    assert!(offset_of!(Control, exit_code) == 0x70);
    assert!(offset_of!(Control, nested_control) == 0x90);
    assert!(offset_of!(Control, event_injection) == 0xa8);
    assert!(offset_of!(Control, clean) == 0xc0);
    assert!(offset_of!(Control, next_rip) == 0xc8);
    assert!(offset_of!(Vmcb, save) == 0x400);
    assert!(offset_of!(Save, tr) == 0x90);
    assert!(offset_of!(Save, cpl) == 0xcb);
    assert!(offset_of!(Save, efer) == 0xd0);
    assert!(offset_of!(Save, cr4) == 0x148);
    assert!(offset_of!(Save, rip) == 0x178);
    assert!(offset_of!(Save, rsp) == 0x1d8);
    assert!(offset_of!(Save, rax) == 0x1f8);
    assert!(offset_of!(Save, cr2) == 0x240);
    assert!(offset_of!(Save, g_pat) == 0x268);
    assert!(offset_of!(Save, spec_ctrl) == 0x2e0);
};

/// A segment or table register as the block stores it: its access rights packed (section 15.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VmcbSegment {
    pub selector: u16,
    pub attributes: u16,
    pub limit: u32,
    pub base: u64,
}

impl From<Segment> for VmcbSegment {
    fn from(s: Segment) -> Self {
        Self { selector: s.selector, attributes: s.rights.packed(), limit: s.limit, base: s.base }
    }
}

impl From<VmcbSegment> for Segment {
    #[inline]
    fn from(s: VmcbSegment) -> Self {
        let rights = AccessRights::from_packed(s.attributes);
        Self { selector: s.selector, rights, limit: s.limit, base: s.base }
    }
}

/// The block keeps 32 bits of a limit that has 16.
impl From<VmcbSegment> for TableRegister {
    fn from(s: VmcbSegment) -> Self {
        Self { base: s.base, limit: s.limit as u16 }
    }
}

/// Offset 060h.
#[bitfield(u64)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct VirtualInterrupt {
    /// The guest's task priority (its CR8).
    pub tpr: u8,
    /// A virtual interrupt is pending.
    pub is_pending: bool,
    #[bits(7)]
    __: u8,
    /// Its priority.
    #[bits(4)]
    pub priority: u8,
    /// Deliver whatever the task priority.
    pub ignore_tpr: bool,
    #[bits(3)]
    __: u8,
    /// The guest's IF and CR8 govern virtual interrupts only.
    pub masking: bool,
    #[bits(7)]
    __: u8,
    /// Its vector.
    pub vector: u8,
    #[bits(24)]
    __: u32,
}

/// EVENTINJ and EXITINTINFO (sections 15.20 and 15.7.2).
#[bitfield(u64)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct EventInjection {
    /// Interrupt or exception vector.
    pub vector: u8,
    /// One of [`event_type`].
    #[bits(3)]
    pub kind: u8,
    /// Push the error code.
    pub has_error_code: bool,
    #[bits(19)]
    __: u32,
    /// True if there is an event.
    pub is_valid: bool,
    /// The error code.
    pub error_code: u32,
}

/// Kinds of an [`EventInjection`].
pub mod event_type {
    pub const INTERRUPT: u8 = 0;
    pub const NMI: u8 = 2;
    pub const EXCEPTION: u8 = 3;
    pub const SOFTWARE_INTERRUPT: u8 = 4;
}

/// Offset 0C0h: parts that have not changed since the last exit (section 15.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Clean(u32);

bitflags! {
    impl Clean: u32 {
        const INTERCEPTS = 1 << 0;
        const PERMISSION_MAPS = 1 << 1;
        const ASID = 1 << 2;
        const VIRTUAL_INTERRUPT = 1 << 3;
        const NESTED_PAGING = 1 << 4;
        const CONTROL_REGISTERS = 1 << 5;
        const DEBUG_REGISTERS = 1 << 6;
        const TABLES = 1 << 7;
        const SEGMENTS = 1 << 8;
        const CR2 = 1 << 9;
        const LAST_BRANCH = 1 << 10;
        const AVIC = 1 << 11;
    }
}

/// Values of [`Control::tlb_control`].
pub mod tlb {
    pub const KEEP: u8 = 0;
    pub const FLUSH_ALL: u8 = 1;
    pub const FLUSH_THIS_ASID: u8 = 3;
}
