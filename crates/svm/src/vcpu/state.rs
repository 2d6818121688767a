// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vCPU's architectural state, in its control block.

use core::ops::DerefMut;

use handover::state::{ExtensionKind, Registers};
use vm::devices::StateError;
use vm::vcpu::{EntryState, Event, Exceptions, Gpr, Refusal, Rflags, Segment, SegmentName, TableRegister, VcpuState};

use super::{Vcpu, prepare, saved};
use crate::vmcb::{Clean, INTERRUPT_SHADOW, Vmcb};
use crate::{event, intercept, refusal};

impl<B: DerefMut<Target = Vmcb> + 'static> VcpuState for Vcpu<B> {
    fn erased(&mut self) -> &mut dyn VcpuState {
        self
    }

    #[inline(always)]
    fn gpr(&self, register: Gpr) -> u64 {
        match register {
            Gpr::Rax => self.vmcb.save.rax,
            Gpr::Rsp => self.vmcb.save.rsp,
            other => self.switched.gprs[other as usize],
        }
    }

    #[inline(always)]
    fn set_gpr(&mut self, register: Gpr, value: u64) {
        match register {
            Gpr::Rax => self.vmcb.save.rax = value,
            Gpr::Rsp => self.vmcb.save.rsp = value,
            other => self.switched.gprs[other as usize] = value,
        }
    }

    #[inline(always)]
    fn rip(&self) -> u64 {
        self.vmcb.save.rip
    }

    #[inline(always)]
    fn set_rip(&mut self, rip: u64) {
        self.vmcb.save.rip = rip;
        // Both end with the instruction that a handler has emulated.
        self.vmcb.save.rflags &= !Rflags::RESUME.bits();
        self.vmcb.control.interrupt_shadow &= !INTERRUPT_SHADOW;
    }

    #[inline(always)]
    fn rflags(&self) -> Rflags {
        Rflags::from_bits_retain(self.vmcb.save.rflags)
    }

    fn set_rflags(&mut self, rflags: Rflags) {
        self.vmcb.save.rflags = rflags.bits();
    }

    #[inline(always)]
    fn cr0(&self) -> u64 {
        self.vmcb.save.cr0
    }

    fn cr2(&self) -> u64 {
        self.vmcb.save.cr2
    }

    #[inline(always)]
    fn cr3(&self) -> u64 {
        self.vmcb.save.cr3
    }

    #[inline(always)]
    fn cr4(&self) -> u64 {
        self.vmcb.save.cr4
    }

    fn dr6(&self) -> u64 {
        self.vmcb.save.dr6
    }

    fn set_dr6(&mut self, value: u64) {
        self.vmcb.save.dr6 = value;
        self.touched(Clean::DEBUG_REGISTERS);
    }

    fn dr7(&self) -> u64 {
        self.vmcb.save.dr7
    }

    #[inline(always)]
    fn efer(&self) -> u64 {
        self.vmcb.save.efer & !vm::vcpu::efer::SVME
    }

    fn set_efer(&mut self, value: u64) {
        self.vmcb.save.efer = value | vm::vcpu::efer::SVME;
        self.touched(Clean::CONTROL_REGISTERS);
    }

    fn pat(&self) -> u64 {
        self.vmcb.save.g_pat
    }

    fn set_pat(&mut self, value: u64) {
        self.vmcb.save.g_pat = value;
        self.touched(Clean::NESTED_PAGING);
    }

    #[inline(always)]
    fn segment(&self, name: SegmentName) -> Segment {
        match name {
            SegmentName::Ldtr => self.vmcb.save.ldtr.into(),
            SegmentName::Tr => self.vmcb.save.tr.into(),
            other => self.vmcb.save.segments[other as usize].into(),
        }
    }

    fn gdtr(&self) -> TableRegister {
        self.vmcb.save.gdtr.into()
    }

    fn idtr(&self) -> TableRegister {
        self.vmcb.save.idtr.into()
    }

    fn kernel_gs_base(&self) -> u64 {
        self.vmcb.save.kernel_gs_base
    }

    #[inline(always)]
    fn cpl(&self) -> u8 {
        self.vmcb.save.cpl
    }

    #[inline(always)]
    fn next_rip(&self) -> Option<u64> {
        self.features.next_rip.then_some(self.vmcb.control.next_rip)
    }

    fn instruction_bytes(&self) -> &[u8] {
        let control = &self.vmcb.control;
        let fetched = if self.features.decode_assists { control.bytes_fetched & 0xf } else { 0 };
        &control.instruction_bytes[..usize::from(fetched)]
    }

    #[inline(always)]
    fn inject(&mut self, event: Event) {
        event::inject(&mut self.vmcb, event);
    }

    #[inline(always)]
    fn event_pending(&self) -> bool {
        event::undelivered(&self.vmcb.control).is_valid()
    }

    #[inline(always)]
    fn was_delivering(&self) -> bool {
        self.vmcb.control.exit_interrupt_info.is_valid()
    }

    #[inline(always)]
    fn can_take_interrupt(&self) -> bool {
        !self.event_pending() && self.rflags().contains(Rflags::INTERRUPT) && !self.is_in_interrupt_shadow()
    }

    #[inline(always)]
    fn is_in_interrupt_shadow(&self) -> bool {
        self.vmcb.control.interrupt_shadow & INTERRUPT_SHADOW != 0
    }

    #[inline(always)]
    fn task_priority(&self) -> u8 {
        self.vmcb.control.virtual_interrupt.tpr() & 0xf
    }

    #[inline(always)]
    fn set_task_priority(&mut self, priority: u8) {
        if self.task_priority() != priority & 0xf {
            let virtual_interrupt = self.vmcb.control.virtual_interrupt.with_tpr(priority & 0xf);
            self.vmcb.control.virtual_interrupt = virtual_interrupt;
            self.touched(Clean::VIRTUAL_INTERRUPT);
        }
    }

    #[inline(always)]
    fn withdraw_interrupt(&mut self) -> Option<u8> {
        event::withdraw(&mut self.vmcb.control)
    }

    fn refusal(&self) -> Option<Refusal> {
        refusal::reason(&self.vmcb).map(Into::into)
    }

    fn drop_event(&mut self) -> bool {
        event::drop_injection(&mut self.vmcb.control)
    }

    #[inline(always)]
    fn request_interrupt_window(&mut self, wanted: bool) {
        event::request_window(&mut self.vmcb.control, wanted);
    }

    #[inline(always)]
    fn watch_task_priority(&mut self, wanted: bool) {
        let now = self.vmcb.control.intercept_cr;
        let next = if wanted { now | intercept::CR8_WRITE } else { now & !intercept::CR8_WRITE };
        if now != next {
            self.vmcb.control.intercept_cr = next;
            self.touched(Clean::INTERCEPTS);
        }
    }

    fn watch_interrupt_return(&mut self, wanted: bool) {
        self.vmcb.control.intercept_misc1.set(intercept::Misc1::IRET, wanted);
        self.touched(Clean::INTERCEPTS);
    }

    fn watch_faults(&mut self, wanted: bool) {
        let mut intercepted = Exceptions::from_bits_retain(self.vmcb.control.intercept_exceptions);
        intercepted.set(Exceptions::FAULTS, wanted);
        self.vmcb.control.intercept_exceptions = intercepted.bits();
        self.touched(Clean::INTERCEPTS);
    }

    fn watch_clock_reads(&mut self, wanted: bool) {
        let (misc1, misc2) = intercept::CLOCK_READS;
        self.vmcb.control.intercept_misc1.set(misc1, wanted);
        self.vmcb.control.intercept_misc2.set(misc2, wanted);
        self.touched(Clean::INTERCEPTS);
    }

    fn count_time(&mut self, wanted: bool) {
        self.counts_time = wanted;
    }

    fn count_time_for_host(&mut self, wanted: bool) {
        self.counts_time_for_host = wanted;
    }

    #[inline(always)]
    fn guest_ticks(&self) -> u64 {
        self.switched.guest_ticks
    }

    fn set_tsc_offset(&mut self, ticks: u64) {
        self.vmcb.control.tsc_offset = ticks;
        self.touched(Clean::INTERCEPTS);
    }

    fn reset(&mut self, entry: &EntryState) {
        prepare::save(&mut self.vmcb, entry);
        self.switched.gprs = entry.gprs;
        self.vmcb.save.cpl = 0;
        self.vmcb.save.cr2 = 0;
        self.set_spec_ctrl(0);
        self.vmcb.control.interrupt_shadow = 0;
        event::clear(&mut self.vmcb.control);
        self.vmcb.control.clean = Clean::empty();
        self.flush_tlb();
    }

    fn extension(&self) -> ExtensionKind {
        ExtensionKind::Svm
    }

    fn save(&self, into: &mut Registers) {
        saved::save(&self.vmcb, &self.switched.gprs, into);
        into.xcr0 = self.xcr0.into();
    }

    fn restore(&mut self, from: &Registers) -> Result<(), StateError> {
        saved::check(from)?;
        saved::restore(&mut self.vmcb, &mut self.switched.gprs, from);
        self.xcr0 = from.xcr0.get();
        self.flush_tlb();
        Ok(())
    }

    fn spec_ctrl(&self) -> u64 {
        if self.features.virtual_spec_ctrl { self.vmcb.save.spec_ctrl } else { self.spec_ctrl }
    }

    fn set_spec_ctrl(&mut self, value: u64) {
        match self.features.virtual_spec_ctrl {
            true => self.vmcb.save.spec_ctrl = value,
            false => self.spec_ctrl = value,
        }
    }

    #[inline(always)]
    fn xcr0(&self) -> u64 {
        self.xcr0
    }

    fn set_xcr0(&mut self, value: u64) {
        self.xcr0 = value;
    }
}
