// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vCPU's architectural state.

use handover::state::{ExtensionKind, Registers};
use vm::devices::StateError;
use vm::vcpu::{
    AccessRights, EntryState, Event, Exception, Exceptions, Gpr, Refusal, Rflags, Segment, SegmentName, TableRegister,
    VcpuState, cr0, dr6, efer,
};

use super::bits::{BLOCKED_NMI, DR7_GENERAL_DETECT, SHADOW};
use super::loaded::Loaded;
use super::slot::{Part, Slot};
use super::{Vcpu, prepare, saved};
use crate::control::Control;
use crate::entry::{GuestSegment, State, check};
use crate::event::{Injection, kind};
use crate::failure::instruction_error;

impl<C: Loaded> Vcpu<C> {
    /// Sets or clears a control of the primary word.
    fn set_control(&mut self, control: Control, wanted: bool) {
        let now = self.slot(Slot::PrimaryControls);
        let next = if wanted { now | control.bit() } else { now & !control.bit() };
        self.change(Slot::PrimaryControls, next);
    }

    fn is_injected(&self, event: u8) -> bool {
        self.injection.is_some_and(|injection| injection.interruption.kind() == event)
    }
}

impl<C: Loaded> VcpuState for Vcpu<C> {
    fn erased(&mut self) -> &mut dyn VcpuState {
        self
    }

    fn gpr(&self, register: Gpr) -> u64 {
        match register {
            Gpr::Rsp => self.slot(Slot::Rsp),
            other => self.switched.gprs[other as usize],
        }
    }

    fn set_gpr(&mut self, register: Gpr, value: u64) {
        match register {
            Gpr::Rsp => self.cache.set(Slot::Rsp, value),
            other => self.switched.gprs[other as usize] = value,
        }
    }

    fn rip(&self) -> u64 {
        self.slot(Slot::Rip)
    }

    fn set_rip(&mut self, rip: u64) {
        self.cache.set(Slot::Rip, rip);
        self.change(Slot::Rflags, self.slot(Slot::Rflags) & !Rflags::RESUME.bits());
        self.change(Slot::Interruptibility, self.slot(Slot::Interruptibility) & !SHADOW);
    }

    fn rflags(&self) -> Rflags {
        Rflags::from_bits_retain(self.slot(Slot::Rflags))
    }

    fn set_rflags(&mut self, rflags: Rflags) {
        self.cache.set(Slot::Rflags, rflags.bits());
    }

    fn cr0(&self) -> u64 {
        let owned = self.settings.owned_cr0();
        self.slot(Slot::Cr0) & !owned | self.slot(Slot::Cr0ReadShadow) & owned
    }

    fn cr2(&self) -> u64 {
        self.slot(Slot::Cr2)
    }

    fn cr3(&self) -> u64 {
        self.slot(Slot::Cr3)
    }

    fn cr4(&self) -> u64 {
        let owned = self.settings.owned_cr4();
        self.slot(Slot::Cr4) & !owned | self.slot(Slot::Cr4ReadShadow) & owned
    }

    fn dr6(&self) -> u64 {
        self.slot(Slot::Dr6)
    }

    fn set_dr6(&mut self, value: u64) {
        self.cache.set(Slot::Dr6, value);
    }

    fn dr7(&self) -> u64 {
        self.slot(Slot::Dr7)
    }

    fn efer(&self) -> u64 {
        self.slot(Slot::Efer)
    }

    fn set_efer(&mut self, value: u64) {
        self.cache.set(Slot::Efer, value);
    }

    fn pat(&self) -> u64 {
        self.slot(Slot::Pat)
    }

    fn set_pat(&mut self, value: u64) {
        self.cache.set(Slot::Pat, value);
    }

    fn segment(&self, name: SegmentName) -> Segment {
        let part = |part| self.slot(Slot::of(name, part));
        GuestSegment {
            selector: part(Part::Selector) as u16,
            rights: part(Part::Rights) as u32,
            limit: part(Part::Limit) as u32,
            base: part(Part::Base),
        }
        .into()
    }

    fn gdtr(&self) -> TableRegister {
        TableRegister { base: self.slot(Slot::GdtrBase), limit: self.slot(Slot::GdtrLimit) as u16 }
    }

    fn idtr(&self) -> TableRegister {
        TableRegister { base: self.slot(Slot::IdtrBase), limit: self.slot(Slot::IdtrLimit) as u16 }
    }

    fn kernel_gs_base(&self) -> u64 {
        self.slot(Slot::KernelGsBase)
    }

    /// The DPL of SS, usable or not (section 25.4.1).
    fn cpl(&self) -> u8 {
        (self.slot(Slot::SsRights) >> 5 & 3) as u8
    }

    fn next_rip(&self) -> Option<u64> {
        let next = self.rip().wrapping_add(self.instruction_bytes?.into());
        let is_64_bit =
            self.efer() & efer::LMA != 0 && self.slot(Slot::CsRights) & u64::from(AccessRights::LONG.bits()) != 0;
        Some(if is_64_bit { next } else { next & 0xffff_ffff })
    }

    fn instruction_bytes(&self) -> &[u8] {
        &[]
    }

    fn inject(&mut self, event: Event) {
        if let Event::Exception(Exception::PageFault { address, .. }) = event {
            self.cache.set(Slot::Cr2, address);
        }
        if let Event::Exception(debug @ (Exception::Debug | Exception::SingleStep)) = event {
            let step = if debug == Exception::SingleStep { dr6::BS } else { 0 };
            self.change(Slot::Dr6, self.slot(Slot::Dr6) | step);
            self.change(Slot::Dr7, self.slot(Slot::Dr7) & !DR7_GENERAL_DETECT);
        }
        self.injection = Some(Injection::new(event, self.slot(Slot::Cr0) & cr0::PE == 0));
    }

    fn event_pending(&self) -> bool {
        self.injection.is_some()
    }

    fn was_delivering(&self) -> bool {
        self.was_delivering
    }

    fn can_take_interrupt(&self) -> bool {
        !self.event_pending() && self.rflags().contains(Rflags::INTERRUPT) && !self.is_in_interrupt_shadow()
    }

    fn is_in_interrupt_shadow(&self) -> bool {
        self.slot(Slot::Interruptibility) & SHADOW != 0
    }

    fn task_priority(&self) -> u8 {
        self.cpu.task_priority_byte() >> 4
    }

    fn set_task_priority(&mut self, priority: u8) {
        self.cpu.set_task_priority_byte(priority << 4);
    }

    fn withdraw_interrupt(&mut self) -> Option<u8> {
        let withdrawn = self.injection.take_if(|injection| injection.interruption.kind() == kind::INTERRUPT);
        withdrawn.map(|injection| injection.interruption.vector())
    }

    fn refusal(&self) -> Option<Refusal> {
        let state = State::load(&self.cpu, self.settings.capabilities().allowed_controls());
        match check(&state, &self.settings.bounds) {
            Err(rule) => Some(Refusal { item: rule.item, violated: rule.violated, section: rule.section }),
            Ok(()) => self.entry_error.and_then(instruction_error).map(Into::into),
        }
    }

    fn drop_event(&mut self) -> bool {
        let is_nmi = self.is_injected(kind::NMI);
        self.injection = None;
        is_nmi
    }

    fn request_interrupt_window(&mut self, wanted: bool) {
        self.set_control(Control::InterruptWindowExiting, wanted);
    }

    fn watch_task_priority(&mut self, wanted: bool) {
        self.set_control(Control::Cr8LoadExiting, wanted);
    }

    /// The CPU blocks NMIs by itself when it delivers one. Where the handler runs already, it did so in another VMCS.
    fn watch_interrupt_return(&mut self, wanted: bool) {
        self.set_control(Control::NmiWindowExiting, wanted);
        if wanted && !self.is_injected(kind::NMI) {
            self.change(Slot::Interruptibility, self.slot(Slot::Interruptibility) | BLOCKED_NMI);
        }
    }

    fn watch_faults(&mut self, wanted: bool) {
        let mut intercepted = Exceptions::from_bits_retain(self.slot(Slot::ExceptionBitmap) as u32);
        intercepted.set(Exceptions::FAULTS, wanted);
        self.change(Slot::ExceptionBitmap, intercepted.bits().into());
    }

    fn watch_clock_reads(&mut self, wanted: bool) {
        self.set_control(Control::RdtscExiting, wanted);
    }

    fn count_time(&mut self, wanted: bool) {
        self.counts_time = wanted;
    }

    fn count_time_for_host(&mut self, wanted: bool) {
        self.counts_time_for_host = wanted;
    }

    fn guest_ticks(&self) -> u64 {
        self.switched.guest_ticks
    }

    fn set_tsc_offset(&mut self, ticks: u64) {
        self.change(Slot::TscOffset, ticks);
    }

    fn reset(&mut self, entry: &EntryState) {
        prepare::enter(&mut self.cache, self.settings, entry);
        self.switched.gprs = entry.gprs;
        self.spec_ctrl = 0;
        self.injection = None;
        self.set_control(Control::InterruptWindowExiting, false);
        self.set_control(Control::NmiWindowExiting, false);
        self.flush_tlb();
    }

    fn extension(&self) -> ExtensionKind {
        ExtensionKind::Vmx
    }

    fn save(&self, into: &mut Registers) {
        self.save_registers(into);
        saved::save_event(self.injection, self.rip(), into);
        into.xcr0 = self.xcr0.into();
    }

    fn restore(&mut self, from: &Registers) -> Result<(), StateError> {
        let injection = saved::event(from)?;
        let cache = saved::restored(&self.cache, self.settings, from)?;
        (self.cache, self.injection) = (cache, injection);
        self.switched.gprs = from.gprs.map(|register| register.get());
        self.set_task_priority(from.task_priority & 0xf);
        self.xcr0 = from.xcr0.get();
        self.flush_tlb();
        Ok(())
    }

    fn spec_ctrl(&self) -> u64 {
        self.spec_ctrl
    }

    fn set_spec_ctrl(&mut self, value: u64) {
        self.spec_ctrl = value;
    }

    fn xcr0(&self) -> u64 {
        self.xcr0
    }

    fn set_xcr0(&mut self, value: u64) {
        self.xcr0 = value;
    }
}
