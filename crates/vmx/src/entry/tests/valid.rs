// SPDX-License-Identifier: MIT OR Apache-2.0
//! States that every check passes.

use proptest::prelude::*;
use vm::vcpu::{Rflags, efer};

use crate::control::{Control, Controls};
use crate::entry::{Bounds, ControlFields, GuestFields, GuestSegment, HostFields, State};
use crate::request::Request;
use crate::testing::Cpu;

const CS: usize = 1;
const ES: usize = 0;
const DS: usize = 3;
const FS: usize = 4;
const GS: usize = 5;
const LDTR: usize = 6;
const TR: usize = 7;

pub fn bounds() -> Bounds {
    let capabilities = Cpu::complete().read().unwrap();
    Bounds { capabilities, physical_bits: 46, linear_bits: 48, perf_global_ctrl: 0x7_0000_00ff }
}

/// Modes of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Long,
    Compatibility,
    Protected,
    Real,
    Virtual8086,
}

const NEEDED: &[Control] = &[
    Control::ExternalInterruptExiting,
    Control::NmiExiting,
    Control::VirtualNmis,
    Control::ActivateVmxPreemptionTimer,
    Control::SaveVmxPreemptionTimerValue,
    Control::UseTprShadow,
    Control::UseIoBitmaps,
    Control::UseMsrBitmaps,
    Control::EnableEpt,
    Control::EnableVpid,
    Control::UnrestrictedGuest,
    Control::UseTscScaling,
    Control::HostAddressSpaceSize,
    Control::ExitLoadEfer,
    Control::ExitLoadPat,
    Control::ExitLoadPerfGlobalCtrl,
    Control::LoadDebugControls,
    Control::EntryLoadEfer,
    Control::EntryLoadPat,
    Control::EntryLoadPerfGlobalCtrl,
];

impl Mode {
    pub const ALL: [Self; 5] = [Self::Long, Self::Compatibility, Self::Protected, Self::Real, Self::Virtual8086];

    fn is_long(self) -> bool {
        matches!(self, Self::Long | Self::Compatibility)
    }

    /// A state with nothing unusual.
    pub fn plain(self) -> State {
        State { controls: self.controls(), host: host(), guest: self.guest(), segments: self.segments() }
    }

    fn controls(self) -> ControlFields {
        let request = Request { needed: Controls::of(NEEDED), ..Request::default() };
        let resolved = request.resolve(&bounds().capabilities).unwrap();
        let long = if self.is_long() { resolved.with(Control::Ia32eModeGuest) } else { resolved };
        let mut fields = ControlFields {
            vpid: 1,
            io_bitmap_a: 0x1000,
            io_bitmap_b: 0x2000,
            msr_bitmap: 0x3000,
            virtual_apic: 0x4000,
            ept_pointer: 0x501e,
            tsc_multiplier: 1 << 48,
            ..ControlFields::default()
        };
        fields.take(long);
        fields
    }

    fn guest(self) -> GuestFields {
        let (cr0, cr4, efer) = match self {
            Self::Long | Self::Compatibility => (0x8005_0033, 0x2020, efer::LME | efer::LMA | efer::SCE),
            Self::Protected | Self::Virtual8086 => (0x8005_0033, 0x2020, 0),
            Self::Real => (0x30, 0x2000, 0),
        };
        let rflags = if self == Self::Virtual8086 { Rflags::VIRTUAL_8086.bits() | 2 } else { 2 };
        GuestFields {
            cr0,
            cr4,
            efer,
            rflags,
            dr7: 0x400,
            rip: 0xfff0,
            gdtr_limit: 0xffff,
            idtr_limit: 0xffff,
            pat: 0x0007_0406_0007_0406,
            link_pointer: u64::MAX,
            ..GuestFields::default()
        }
    }

    fn segments(self) -> [GuestSegment; 8] {
        let segment = |selector, rights, limit| GuestSegment { selector, rights, limit, base: 0 };
        let (code, data) = match self {
            Self::Long => (segment(0x10, 0xa09b, u32::MAX), segment(0x18, 0xc093, u32::MAX)),
            Self::Compatibility | Self::Protected => (segment(0x10, 0xc09b, u32::MAX), segment(0x18, 0xc093, u32::MAX)),
            Self::Real => (segment(0xf000, 0x93, 0xffff), segment(0, 0x93, 0xffff)),
            Self::Virtual8086 => (segment(0, 0xf3, 0xffff), segment(0, 0xf3, 0xffff)),
        };
        let mut segments = [data; 8];
        segments[CS] = code;
        segments[LDTR] = segment(0, 0x82, 0xffff);
        segments[TR] = segment(0x40, 0x8b, 0x67);
        segments
    }
}

fn host() -> HostFields {
    HostFields {
        cr0: 0x8005_0033,
        cr3: 0x1000,
        cr4: 0x2020,
        rip: 0xffff_8000_0000_1000,
        rsp: 0xffff_8000_0000_2000,
        cs: 8,
        tr: 0x40,
        fs_base: 0xffff_8000_0000_3000,
        pat: 0x0007_0406_0007_0406,
        efer: efer::LME | efer::LMA | efer::SCE | efer::NXE,
        ..HostFields::default()
    }
}

fn canonical() -> impl Strategy<Value = u64> {
    any::<u64>().prop_map(|it| ((it << 16) as i64 >> 16) as u64)
}

fn flags() -> impl Strategy<Value = u64> {
    // All that may be 1 without a consequence for other fields, VM excepted.
    any::<u64>().prop_map(|it| it & 0x3d_7fd5 & !Rflags::VIRTUAL_8086.bits() | 2)
}

/// A usable or unusable data segment at privilege level 0.
fn data() -> impl Strategy<Value = GuestSegment> {
    let kinds = prop::sample::select(&[1_u32, 3, 5, 7, 11, 15][..]);
    (kinds, any::<u16>(), any::<u32>(), any::<u32>(), any::<bool>()).prop_map(
        |(kind, selector, base, limit, usable)| {
            let (granular, limit) = if limit & 1 == 0 { (1 << 15, limit | 0xfff) } else { (0, limit & 0xf_ffff) };
            let unusable = if usable { 0 } else { GuestSegment::UNUSABLE };
            let rights = 0x90 | kind | granular | unusable;
            GuestSegment { selector: selector & !3, rights, limit, base: base.into() }
        },
    )
}

fn registers() -> impl Strategy<Value = GuestFields> {
    let addresses = prop::array::uniform5(canonical());
    (addresses, flags(), any::<[u64; 4]>(), any::<[u32; 3]>(), any::<u16>()).prop_map(
        |(addresses, rflags, wide, narrow, status)| {
            let [gdtr_base, idtr_base, sysenter_esp, sysenter_eip, rip] = addresses;
            let [rsp, dr7, cr3, counters] = wide;
            GuestFields {
                gdtr_base,
                idtr_base,
                sysenter_esp,
                sysenter_eip,
                rip,
                rsp,
                rflags,
                dr7: dr7 >> 32,
                cr3: cr3 >> 18,
                perf_global_ctrl: counters & bounds().perf_global_ctrl,
                sysenter_cs: narrow[0],
                preemption_timer: narrow[1],
                gdtr_limit: narrow[2] & 0xffff,
                interrupt_status: status,
                ..GuestFields::default()
            }
        },
    )
}

/// A valid state of one of these modes.
pub fn state(modes: &[Mode]) -> impl Strategy<Value = State> + use<> {
    let segments = prop::array::uniform4(data());
    (prop::sample::select(modes.to_vec()), registers(), segments, canonical(), 0u32..4).prop_map(
        |(mode, random, segments, base, interruptibility)| {
            let mut state = mode.plain();
            let plain = state.guest;
            let is_narrow = mode != Mode::Long;
            state.guest = GuestFields {
                cr0: plain.cr0,
                cr4: plain.cr4,
                efer: plain.efer,
                pat: plain.pat,
                link_pointer: plain.link_pointer,
                idtr_limit: plain.idtr_limit,
                rip: if is_narrow { random.rip & 0xffff_ffff } else { random.rip },
                rflags: random.rflags | plain.rflags,
                ..random
            };
            if mode != Mode::Virtual8086 {
                [ES, DS, FS, GS].into_iter().zip(segments).for_each(|(at, segment)| state.segments[at] = segment);
                [FS, GS, TR, LDTR].into_iter().for_each(|at| state.segments[at].base = base);
            }
            interrupt(&mut state, interruptibility);
            state
        },
    )
}

/// The states in which a guest can be after an instruction, as far as its flags allow it.
fn interrupt(state: &mut State, interruptibility: u32) {
    let may_have_sti = state.guest.rflags & Rflags::INTERRUPT.bits() != 0;
    state.guest.interruptibility = match interruptibility {
        1 if may_have_sti => 1,
        2 => 2,
        3 => 8,
        _ => 0,
    };
    let is_held = state.guest.interruptibility & 3 != 0;
    let is_stepping = state.guest.rflags & Rflags::TRAP.bits() != 0;
    state.guest.pending_debug = if is_held && is_stepping { 1 << 14 } else { 0 };
}
