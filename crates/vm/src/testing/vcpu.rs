// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU for tests.

use std::vec::Vec;

use handover::state::{ExtensionKind, Registers, SegmentRegister};

use super::events::{restored_event, save_event};
use crate::devices::StateError;
use crate::vcpu::{
    EntryState, Event, Exception, Gpr, Refusal, Rflags, Segment, SegmentName, TableRegister, VcpuState, efer,
};

/// A CPU that is plain data: a handler sees the values that a test sets.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct FakeVcpu {
    pub gprs: [u64; 16],
    pub rip: u64,
    pub rflags: u64,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub dr6: u64,
    pub dr7: u64,
    pub efer: u64,
    pub pat: u64,
    pub xcr0: u64,
    pub spec_ctrl: u64,
    pub cpl: u8,
    pub segments: [Segment; 8],
    pub gdtr: TableRegister,
    pub idtr: TableRegister,
    pub kernel_gs_base: u64,
    pub next_rip: Option<u64>,
    pub instruction_bytes: Vec<u8>,
    pub injected: Option<Event>,
    /// It left while an event was being delivered.
    pub was_delivering: bool,
    pub window_requested: bool,
    pub task_priority_watched: bool,
    pub interrupt_return_watched: bool,
    pub refusal: Option<&'static str>,
    pub faults_watched: bool,
    pub clock_reads_watched: bool,
    pub task_priority: u8,
    pub is_in_interrupt_shadow: bool,
    pub tsc_offset: u64,
    pub time_is_counted: bool,
    pub time_is_counted_for_host: bool,
    pub guest_ticks: u64,
}

impl FakeVcpu {
    /// The exception injected, if one was.
    pub fn exception(&self) -> Option<Exception> {
        match self.injected {
            Some(Event::Exception(exception)) => Some(exception),
            _ => None,
        }
    }
}

impl VcpuState for FakeVcpu {
    fn erased(&mut self) -> &mut dyn VcpuState {
        self
    }
    fn gpr(&self, register: Gpr) -> u64 {
        self.gprs[register as usize]
    }
    fn set_gpr(&mut self, register: Gpr, value: u64) {
        self.gprs[register as usize] = value;
    }
    fn rip(&self) -> u64 {
        self.rip
    }
    fn set_rip(&mut self, rip: u64) {
        self.rip = rip;
        self.rflags &= !Rflags::RESUME.bits();
        self.is_in_interrupt_shadow = false;
    }
    fn rflags(&self) -> Rflags {
        Rflags::from_bits_retain(self.rflags)
    }
    fn set_rflags(&mut self, rflags: Rflags) {
        self.rflags = rflags.bits();
    }
    fn cr0(&self) -> u64 {
        self.cr0
    }
    fn cr2(&self) -> u64 {
        self.cr2
    }
    fn cr3(&self) -> u64 {
        self.cr3
    }
    fn cr4(&self) -> u64 {
        self.cr4
    }
    fn dr6(&self) -> u64 {
        self.dr6
    }
    fn set_dr6(&mut self, value: u64) {
        self.dr6 = value;
    }
    fn dr7(&self) -> u64 {
        self.dr7
    }
    fn efer(&self) -> u64 {
        self.efer & !efer::SVME
    }
    fn set_efer(&mut self, value: u64) {
        self.efer = value;
    }
    fn pat(&self) -> u64 {
        self.pat
    }
    fn set_pat(&mut self, value: u64) {
        self.pat = value;
    }
    fn segment(&self, name: SegmentName) -> Segment {
        self.segments[name as usize]
    }
    fn gdtr(&self) -> TableRegister {
        self.gdtr
    }
    fn idtr(&self) -> TableRegister {
        self.idtr
    }
    fn kernel_gs_base(&self) -> u64 {
        self.kernel_gs_base
    }
    fn cpl(&self) -> u8 {
        self.cpl
    }
    fn next_rip(&self) -> Option<u64> {
        self.next_rip
    }
    fn instruction_bytes(&self) -> &[u8] {
        &self.instruction_bytes
    }
    fn inject(&mut self, event: Event) {
        assert!(self.injected.is_none(), "a second event was injected");
        self.injected = Some(event);
    }
    fn event_pending(&self) -> bool {
        self.injected.is_some()
    }
    fn was_delivering(&self) -> bool {
        self.was_delivering
    }
    fn can_take_interrupt(&self) -> bool {
        self.injected.is_none() && self.rflags().contains(Rflags::INTERRUPT) && !self.is_in_interrupt_shadow
    }
    fn is_in_interrupt_shadow(&self) -> bool {
        self.is_in_interrupt_shadow
    }
    fn task_priority(&self) -> u8 {
        self.task_priority
    }
    fn set_task_priority(&mut self, priority: u8) {
        self.task_priority = priority & 0xf;
    }
    fn withdraw_interrupt(&mut self) -> Option<u8> {
        match self.injected {
            Some(Event::Interrupt(vector)) => {
                self.injected = None;
                Some(vector)
            }
            _ => None,
        }
    }
    fn refusal(&self) -> Option<Refusal> {
        self.refusal.map(Into::into)
    }
    fn drop_event(&mut self) -> bool {
        match self.injected {
            None | Some(Event::Interrupt(_)) => false,
            Some(_) => self.injected.take() == Some(Event::Nmi),
        }
    }
    fn request_interrupt_window(&mut self, wanted: bool) {
        self.window_requested = wanted;
    }
    fn watch_task_priority(&mut self, wanted: bool) {
        self.task_priority_watched = wanted;
    }
    fn watch_interrupt_return(&mut self, wanted: bool) {
        self.interrupt_return_watched = wanted;
    }
    fn watch_faults(&mut self, wanted: bool) {
        self.faults_watched = wanted;
    }
    fn watch_clock_reads(&mut self, wanted: bool) {
        self.clock_reads_watched = wanted;
    }
    fn count_time(&mut self, wanted: bool) {
        self.time_is_counted = wanted;
    }
    fn count_time_for_host(&mut self, wanted: bool) {
        self.time_is_counted_for_host = wanted;
    }
    fn guest_ticks(&self) -> u64 {
        self.guest_ticks
    }
    fn set_tsc_offset(&mut self, ticks: u64) {
        self.tsc_offset = ticks;
    }
    fn reset(&mut self, entry: &EntryState) {
        let EntryState { rip, rflags, gprs, cr0, cr3, cr4, efer, cs, data, tr, .. } = *entry;
        let (pat, xcr0, tsc_offset) = (self.pat, self.xcr0, self.tsc_offset);
        let (time_is_counted, guest_ticks) = (self.time_is_counted, self.guest_ticks);
        *self = Self { rip, rflags, gprs, cr0, cr3, cr4, efer, pat, xcr0, tsc_offset, ..Self::default() };
        (self.time_is_counted, self.guest_ticks) = (time_is_counted, guest_ticks);
        self.gprs[Gpr::Rsp as usize] = entry.rsp;
        self.segments = [data; 8];
        self.segments[SegmentName::Cs as usize] = cs;
        self.segments[SegmentName::Tr as usize] = tr;
    }
    fn extension(&self) -> ExtensionKind {
        ExtensionKind::Svm
    }
    fn save(&self, into: &mut Registers) {
        let number = |value: u64| value.into();
        into.gprs = self.gprs.map(number);
        (into.rip, into.rflags) = (number(self.rip), number(self.rflags));
        (into.cr0, into.cr2) = (number(self.cr0), number(self.cr2));
        (into.cr3, into.cr4) = (number(self.cr3), number(self.cr4));
        (into.dr6, into.dr7) = (number(self.dr6), number(self.dr7));
        (into.efer, into.pat) = (number(self.efer()), number(self.pat));
        (into.xcr0, into.kernel_gs_base) = (number(self.xcr0), number(self.kernel_gs_base));
        into.segments = self.segments.map(Into::into);
        (into.gdtr, into.idtr) = (self.gdtr.into(), self.idtr.into());
        (into.task_priority, into.cpl) = (self.task_priority, self.cpl);
        into.interrupt_shadow = self.is_in_interrupt_shadow.into();
        save_event(self.injected, into);
    }
    fn restore(&mut self, from: &Registers) -> Result<(), StateError> {
        let injected = restored_event(from)?;
        let table = |from: SegmentRegister| TableRegister { base: from.base.get(), limit: from.limit.get() as u16 };
        let svme = self.efer & efer::SVME;
        *self = Self {
            gprs: from.gprs.map(|gpr| gpr.get()),
            rip: from.rip.get(),
            rflags: from.rflags.get(),
            cr0: from.cr0.get(),
            cr2: from.cr2.get(),
            cr3: from.cr3.get(),
            cr4: from.cr4.get(),
            dr6: from.dr6.get(),
            dr7: from.dr7.get(),
            efer: from.efer.get() | svme,
            pat: from.pat.get(),
            xcr0: from.xcr0.get(),
            cpl: from.cpl,
            segments: from.segments.map(Into::into),
            gdtr: table(from.gdtr),
            idtr: table(from.idtr),
            kernel_gs_base: from.kernel_gs_base.get(),
            injected,
            task_priority: from.task_priority & 0xf,
            is_in_interrupt_shadow: from.interrupt_shadow != 0,
            guest_ticks: self.guest_ticks,
            ..Self::default()
        };
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
