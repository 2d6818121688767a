// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers out of the control block and back, for the next image. Intercepts, addresses of tables and the ASID stay
//! as the control block has them.

use handover::state::{Registers, SegmentRegister, event_flag};
use vm::devices::StateError;
use vm::vcpu::{Gpr, cr0, cr4, efer};

use crate::event;
use crate::vmcb::{Clean, EventInjection, VirtualInterrupt, Vmcb, VmcbSegment, event_type};

const HIGH_HALF: u64 = 0xffff_ffff << 32;
/// CR0: cache disable and not write-through; the second does not go without the first.
const CR0_CD: u64 = 1 << 30;
const CR0_NW: u64 = 1 << 29;
/// CR4: no CPU defines more; which of these one has, its guests have been held to.
const CR4_DEFINED: u64 = 0x1_ffff_ffff;
/// CR3: as wide as addresses can be, with PCID or caching bits below.
const CR3_RESERVED: u64 = 0xfff0_0000_0000_0000;
/// Attributes of a code segment: 64-bit, and its default size, which are not both set.
const LONG: u16 = 1 << 9;
const DEFAULT_SIZE: u16 = 1 << 10;

pub fn save(vmcb: &Vmcb, gprs: &[u64; 16], into: &mut Registers) {
    let save = &vmcb.save;
    into.gprs = gprs.map(Into::into);
    into.gprs[Gpr::Rax as usize] = save.rax.into();
    into.gprs[Gpr::Rsp as usize] = save.rsp.into();
    (into.rip, into.rflags) = (save.rip.into(), save.rflags.into());
    (into.cr0, into.cr2) = (save.cr0.into(), save.cr2.into());
    (into.cr3, into.cr4) = (save.cr3.into(), save.cr4.into());
    (into.dr6, into.dr7) = (save.dr6.into(), save.dr7.into());
    (into.efer, into.pat) = ((save.efer & !efer::SVME).into(), save.g_pat.into());
    into.debug_control = save.debug_control.into();
    (into.star, into.lstar) = (save.star.into(), save.lstar.into());
    (into.cstar, into.sfmask) = (save.cstar.into(), save.sfmask.into());
    into.kernel_gs_base = save.kernel_gs_base.into();
    (into.sysenter_cs, into.sysenter_esp) = (save.sysenter_cs.into(), save.sysenter_esp.into());
    into.sysenter_eip = save.sysenter_eip.into();
    let [es, cs, ss, ds, fs, gs] = save.segments;
    into.segments = [es, cs, ss, ds, fs, gs, save.ldtr, save.tr].map(out);
    (into.gdtr, into.idtr) = (out(save.gdtr), out(save.idtr));
    into.cpl = save.cpl;
    into.task_priority = vmcb.control.virtual_interrupt.tpr() & 0xf;
    into.interrupt_shadow = (vmcb.control.interrupt_shadow & 1) as u8;
    save_event(vmcb, into);
}

fn save_event(vmcb: &Vmcb, into: &mut Registers) {
    let event = event::undelivered(&vmcb.control);
    if !event.is_valid() {
        (into.event_flags, into.event_kind, into.event_vector) = (0, 0, 0);
        (into.event_code, into.event_next_rip) = (0.into(), 0.into());
        return;
    }
    let has_code = if event.has_error_code() { event_flag::HAS_CODE } else { 0 };
    into.event_flags = event_flag::IS_VALID | has_code;
    (into.event_kind, into.event_vector) = (event.kind(), event.vector());
    (into.event_code, into.event_next_rip) = (event.error_code().into(), vmcb.control.next_rip.into());
}

/// Refuses registers that VMRUN would refuse (section 15.5.1, "Canonicalization and Consistency Checks"; section 15.20
/// for the event), and values that no register of this structure can have.
pub fn check(from: &Registers) -> Result<(), StateError> {
    let [cr0, cr3, cr4, efer] = [from.cr0, from.cr3, from.cr4, from.efer].map(|register| register.get());
    let is_long = efer & efer::LME != 0 && cr0 & cr0::PG != 0;
    let code = from.segments[1].attributes.get();
    let refusals = [
        ("registers.efer", efer & efer::SVME != 0),
        ("registers.cr0", cr0 & HIGH_HALF != 0 || cr0 & CR0_NW != 0 && cr0 & CR0_CD == 0),
        ("registers.cr3", cr3 & CR3_RESERVED != 0 && cr0 & cr0::PG != 0),
        ("registers.cr4", cr4 & !CR4_DEFINED != 0 || is_long && cr4 & cr4::PAE == 0),
        ("registers.cr0", is_long && cr0 & cr0::PE == 0),
        ("registers.dr6", from.dr6.get() & HIGH_HALF != 0),
        ("registers.dr7", from.dr7.get() & HIGH_HALF != 0),
        ("registers.segments", is_long && code & LONG != 0 && code & DEFAULT_SIZE != 0),
        ("registers.cpl", from.cpl > 3),
        ("registers.task_priority", from.task_priority > 0xf),
        ("registers.interrupt_shadow", from.interrupt_shadow > 1),
        ("registers.event", !is_event(from)),
    ];
    match refusals.into_iter().find(|(_, is_refused)| *is_refused) {
        Some((field, _)) => Err(StateError { field, reason: "no CPU enters a guest so" }),
        None => Ok(()),
    }
}

fn is_event(from: &Registers) -> bool {
    let (kind, vector, flags) = (from.event_kind, from.event_vector, from.event_flags);
    if flags & event_flag::IS_VALID == 0 {
        return flags == 0;
    }
    let is_known = match kind {
        event_type::INTERRUPT | event_type::SOFTWARE_INTERRUPT => flags & event_flag::HAS_CODE == 0,
        event_type::NMI => vector == 2 && flags & event_flag::HAS_CODE == 0,
        event_type::EXCEPTION => vector < 32 && vector != 2,
        _ => false,
    };
    is_known && flags & !(event_flag::IS_VALID | event_flag::HAS_CODE) == 0
}

/// Puts registers that have been checked into the control block. Nothing that a CPU has cached of it is used any more.
pub fn restore(vmcb: &mut Vmcb, gprs: &mut [u64; 16], from: &Registers) {
    let save = &mut vmcb.save;
    *gprs = from.gprs.map(|register| register.get());
    (save.rax, save.rsp) = (gprs[Gpr::Rax as usize], gprs[Gpr::Rsp as usize]);
    (save.rip, save.rflags) = (from.rip.get(), from.rflags.get());
    (save.cr0, save.cr2, save.cr3, save.cr4) = (from.cr0.get(), from.cr2.get(), from.cr3.get(), from.cr4.get());
    (save.dr6, save.dr7) = (from.dr6.get(), from.dr7.get());
    (save.efer, save.g_pat) = (from.efer.get() | efer::SVME, from.pat.get());
    save.debug_control = from.debug_control.get();
    (save.star, save.lstar) = (from.star.get(), from.lstar.get());
    (save.cstar, save.sfmask) = (from.cstar.get(), from.sfmask.get());
    save.kernel_gs_base = from.kernel_gs_base.get();
    (save.sysenter_cs, save.sysenter_esp) = (from.sysenter_cs.get(), from.sysenter_esp.get());
    save.sysenter_eip = from.sysenter_eip.get();
    let [es, cs, ss, ds, fs, gs, ldtr, tr] = from.segments.map(back);
    save.segments = [es, cs, ss, ds, fs, gs];
    (save.ldtr, save.tr) = (ldtr, tr);
    (save.gdtr, save.idtr) = (back(from.gdtr), back(from.idtr));
    save.cpl = from.cpl;
    let control = &mut vmcb.control;
    control.virtual_interrupt = VirtualInterrupt::new().with_masking(true).with_tpr(from.task_priority & 0xf);
    event::clear(control);
    control.interrupt_shadow = from.interrupt_shadow.into();
    event::redeliver(control, carried(from));
    control.next_rip = from.event_next_rip.get();
    control.exit_interrupt_info = EventInjection::new();
    control.clean = Clean::empty();
}

fn carried(from: &Registers) -> EventInjection {
    if from.event_flags & event_flag::IS_VALID == 0 {
        return EventInjection::new();
    }
    EventInjection::new()
        .with_is_valid(true)
        .with_has_error_code(from.event_flags & event_flag::HAS_CODE != 0)
        .with_kind(from.event_kind)
        .with_vector(from.event_vector)
        .with_error_code(from.event_code.get())
}

/// Both forms pack a segment's access rights alike.
fn out(VmcbSegment { selector, attributes, limit, base }: VmcbSegment) -> SegmentRegister {
    SegmentRegister { selector: selector.into(), attributes: attributes.into(), limit: limit.into(), base: base.into() }
}

fn back(SegmentRegister { selector, attributes, limit, base }: SegmentRegister) -> VmcbSegment {
    VmcbSegment { selector: selector.get(), attributes: attributes.get(), limit: limit.get(), base: base.get() }
}

#[cfg(test)]
mod tests;
