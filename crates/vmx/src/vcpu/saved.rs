// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers for the next image, and back: all of them by their architecture's names, none by a VMCS's.

use handover::state::{Registers, SegmentRegister, event_flag};
use vm::devices::StateError;
use vm::vcpu::{Rflags, Segment, SegmentName, VcpuState, cr0, cr4, efer};

use super::bits::{SHADOW_OF_SS, SHADOW_OF_STI, single_step};
use super::cache::Cache;
use super::loaded::Loaded;
use super::slot::{Part, Slot};
use super::{Vcpu, prepare};
use crate::control::Word;
use crate::entry::{ControlFields, GuestFields, GuestSegment, HostFields, State, check_guest};
use crate::event::{Injection, Interruption, kind};
use crate::settings::Settings;

const SEGMENTS: [SegmentName; 8] = [
    SegmentName::Es,
    SegmentName::Cs,
    SegmentName::Ss,
    SegmentName::Ds,
    SegmentName::Fs,
    SegmentName::Gs,
    SegmentName::Ldtr,
    SegmentName::Tr,
];
const NOT_CANONICAL: &str = "it is no canonical address";
/// No instruction is longer.
const LONGEST_INSTRUCTION: u64 = 15;

impl<C: Loaded> Vcpu<C> {
    pub(super) fn save_registers(&self, into: &mut Registers) {
        let slot = |slot| self.slot(slot).into();
        into.gprs = self.switched.gprs.map(Into::into);
        into.gprs[vm::vcpu::Gpr::Rsp as usize] = slot(Slot::Rsp);
        (into.rip, into.rflags) = (slot(Slot::Rip), slot(Slot::Rflags));
        (into.cr0, into.cr2) = (self.cr0().into(), slot(Slot::Cr2));
        (into.cr3, into.cr4) = (slot(Slot::Cr3), self.cr4().into());
        (into.dr6, into.dr7) = (slot(Slot::Dr6), slot(Slot::Dr7));
        (into.efer, into.pat) = (slot(Slot::Efer), slot(Slot::Pat));
        into.debug_control = slot(Slot::DebugControl);
        (into.star, into.lstar) = (slot(Slot::Star), slot(Slot::Lstar));
        (into.cstar, into.sfmask) = (slot(Slot::Cstar), slot(Slot::Sfmask));
        into.kernel_gs_base = slot(Slot::KernelGsBase);
        (into.sysenter_cs, into.sysenter_esp) = (slot(Slot::SysenterCs), slot(Slot::SysenterEsp));
        into.sysenter_eip = slot(Slot::SysenterEip);
        into.segments = SEGMENTS.map(|name| self.segment(name).into());
        into.gdtr = table(self.gdtr().base, self.gdtr().limit);
        into.idtr = table(self.idtr().base, self.idtr().limit);
        into.cpl = self.cpl();
        into.task_priority = self.task_priority();
        into.interrupt_shadow = self.is_in_interrupt_shadow().into();
    }
}

fn table(base: u64, limit: u16) -> SegmentRegister {
    SegmentRegister { selector: 0.into(), attributes: 0.into(), limit: u32::from(limit).into(), base: base.into() }
}

pub(super) fn save_event(injection: Option<Injection>, rip: u64, into: &mut Registers) {
    let Some(Injection { interruption, error_code, instruction_bytes }) = injection else {
        (into.event_flags, into.event_kind, into.event_vector) = (0, 0, 0);
        (into.event_code, into.event_next_rip) = (0.into(), 0.into());
        return;
    };
    let has_code = if interruption.has_error_code() { event_flag::HAS_CODE } else { 0 };
    into.event_flags = event_flag::IS_VALID | has_code;
    (into.event_kind, into.event_vector) = (interruption.kind(), interruption.vector());
    into.event_code = error_code.into();
    into.event_next_rip = rip.wrapping_add(instruction_bytes.into()).into();
}

/// The event that waits, if one does and if an entry can inject it.
pub(super) fn event(from: &Registers) -> Result<Option<Injection>, StateError> {
    let (flags, kind, vector) = (from.event_flags, from.event_kind, from.event_vector);
    if flags == 0 {
        return Ok(None);
    }
    let has_code = flags & event_flag::HAS_CODE != 0;
    let bytes = from.event_next_rip.get().wrapping_sub(from.rip.get());
    let is_known = match kind {
        kind::INTERRUPT => !has_code,
        kind::NMI => vector == 2 && !has_code,
        kind::EXCEPTION => vector < 32 && vector != 2,
        kind::SOFTWARE_INTERRUPT => !has_code && bytes <= LONGEST_INSTRUCTION,
        kind::PRIVILEGED_EXCEPTION | kind::SOFTWARE_EXCEPTION => {
            vector < 32 && !has_code && bytes <= LONGEST_INSTRUCTION
        }
        _ => false,
    };
    if !is_known || flags & !(event_flag::IS_VALID | event_flag::HAS_CODE) != 0 || flags & event_flag::IS_VALID == 0 {
        return Err(StateError { field: "registers.event", reason: "no CPU enters a guest so" });
    }
    let interruption =
        Interruption::new().with_is_valid(true).with_kind(kind).with_vector(vector).with_has_error_code(has_code);
    let instruction_bytes = if kind::is_software(kind) { bytes as u32 } else { 0 };
    Ok(Some(Injection { interruption, error_code: from.event_code.get(), instruction_bytes }))
}

/// Copies with these registers, all of them to be written.
pub(super) fn restored(cache: &Cache, settings: &Settings, from: &Registers) -> Result<Cache, StateError> {
    check(from, settings)?;
    let mut next = cache.clone();
    prepare::set_mode(&mut next, settings, from.efer.get());
    prepare::set_cr0(&mut next, settings, from.cr0.get());
    prepare::set_cr4(&mut next, settings, from.cr4.get());
    for (name, segment) in SEGMENTS.into_iter().zip(from.segments) {
        prepare::set_segment(&mut next, name, Segment::from(segment));
    }
    for (slot, value) in [
        (Slot::Rip, from.rip),
        (Slot::Rsp, from.gprs[vm::vcpu::Gpr::Rsp as usize]),
        (Slot::Rflags, from.rflags),
        (Slot::Cr2, from.cr2),
        (Slot::Cr3, from.cr3),
        (Slot::Dr6, from.dr6),
        (Slot::Dr7, from.dr7),
        (Slot::Pat, from.pat),
        (Slot::DebugControl, from.debug_control),
        (Slot::Star, from.star),
        (Slot::Lstar, from.lstar),
        (Slot::Cstar, from.cstar),
        (Slot::Sfmask, from.sfmask),
        (Slot::KernelGsBase, from.kernel_gs_base),
        (Slot::SysenterCs, from.sysenter_cs),
        (Slot::SysenterEsp, from.sysenter_esp),
        (Slot::SysenterEip, from.sysenter_eip),
        (Slot::GdtrBase, from.gdtr.base),
        (Slot::IdtrBase, from.idtr.base),
    ] {
        next.set(slot, value.get());
    }
    next.set(Slot::GdtrLimit, from.gdtr.limit.get().into());
    next.set(Slot::IdtrLimit, from.idtr.limit.get().into());
    next.set(Slot::Interruptibility, shadow(from));
    next.set(Slot::PendingDebug, 0);
    check_guest(&state(&next, settings), &settings.bounds)
        .map_err(|rule| StateError { field: rule.item, reason: rule.violated })?;
    Ok(next)
}

/// The shadow of STI where there can be one (section 27.3.1.5), else that of a load of SS: both hold interrupts back
/// for one instruction.
fn shadow(from: &Registers) -> u64 {
    match (from.interrupt_shadow, from.rflags.get() & Rflags::INTERRUPT.bits() != 0) {
        (0, _) => 0,
        (_, true) => SHADOW_OF_STI,
        (_, false) => SHADOW_OF_SS,
    }
}

/// Refuses what a VM entry does not check: registers that it does not load, of which the CPU would refuse a value, and
/// what it would find only in memory.
fn check(from: &Registers, settings: &Settings) -> Result<(), StateError> {
    let is_address = |register: u64| settings.bounds.is_canonical(register);
    let is_paging = from.cr0.get() & cr0::PG != 0;
    let has_pdptes = is_paging && from.cr4.get() & cr4::PAE != 0 && from.efer.get() & efer::LMA == 0;
    let refusals = [
        ("registers.efer", from.efer.get() & efer::SVME != 0, "a bit is set that no CPU with VMX has"),
        ("registers.lstar", !is_address(from.lstar.get()), NOT_CANONICAL),
        ("registers.cstar", !is_address(from.cstar.get()), NOT_CANONICAL),
        ("registers.kernel_gs_base", !is_address(from.kernel_gs_base.get()), NOT_CANONICAL),
        ("registers.sfmask", from.sfmask.get() >> 32 != 0, "a bit above 31 is set"),
        ("registers.sysenter_cs", from.sysenter_cs.get() >> 32 != 0, "a bit above 31 is set"),
        ("registers.task_priority", from.task_priority > 0xf, "it is above 15"),
        ("registers.interrupt_shadow", from.interrupt_shadow > 1, "no CPU enters a guest so"),
        ("registers.cpl", from.cpl != (from.segments[2].attributes.get() >> 5 & 3) as u8, "it is not that of SS"),
        (
            "registers.cr4",
            has_pdptes,
            "the guest uses 32-bit PAE paging, whose four first entries a CPU with VMX keeps apart, and this version \
             does not hand them over",
        ),
    ];
    match refusals.into_iter().find(|(_, is_refused, _)| *is_refused) {
        Some((field, _, reason)) => Err(StateError { field, reason }),
        None => Ok(()),
    }
}

/// Returns the guest's state that an entry checks. All of it is in the copies.
fn state(cache: &Cache, settings: &Settings) -> State {
    let value = |slot| cache.copy(slot);
    let controls = ControlFields {
        pin: settings.word(Word::Pin),
        primary: settings.word(Word::Primary),
        secondary: settings.word(Word::Secondary),
        exit: settings.word(Word::Exit),
        entry: value(Slot::EntryControls) as u32,
        ..ControlFields::default()
    };
    let guest = GuestFields {
        cr0: value(Slot::Cr0),
        cr3: value(Slot::Cr3),
        cr4: value(Slot::Cr4),
        dr7: value(Slot::Dr7),
        rip: value(Slot::Rip),
        rsp: value(Slot::Rsp),
        rflags: value(Slot::Rflags),
        gdtr_base: value(Slot::GdtrBase),
        gdtr_limit: value(Slot::GdtrLimit) as u32,
        idtr_base: value(Slot::IdtrBase),
        idtr_limit: value(Slot::IdtrLimit) as u32,
        debug_control: value(Slot::DebugControl),
        sysenter_cs: value(Slot::SysenterCs) as u32,
        sysenter_esp: value(Slot::SysenterEsp),
        sysenter_eip: value(Slot::SysenterEip),
        pat: value(Slot::Pat),
        efer: value(Slot::Efer),
        interruptibility: value(Slot::Interruptibility) as u32,
        // The pending single step in a shadow is computed before the entry.
        pending_debug: single_step(value(Slot::Rflags), value(Slot::Interruptibility), value(Slot::DebugControl)),
        link_pointer: u64::MAX,
        ..GuestFields::default()
    };
    let segments = SEGMENTS.map(|name| GuestSegment {
        selector: value(Slot::of(name, Part::Selector)) as u16,
        rights: value(Slot::of(name, Part::Rights)) as u32,
        limit: value(Slot::of(name, Part::Limit)) as u32,
        base: value(Slot::of(name, Part::Base)),
    });
    State { controls, host: HostFields::default(), guest, segments }
}
