// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU: the control block plus the registers it does not hold.

mod saved;

use core::ops::DerefMut;

use handover::state::Registers;
use vm::devices::StateError;
use vm::exit::Exit;
use vm::vcpu::{EntryState, Event, Exception, Gpr, Rflags, Segment, SegmentName, TableRegister, VcpuState, dr6, efer};

use crate::code;
use crate::event;
use crate::features::Features;
use crate::intercept;
use crate::refusal;
use crate::vmcb::{Clean, VirtualInterrupt, Vmcb, VmcbSegment, tlb};

/// EFLAGS.RF and the shadow bit both end with the instruction that handlers have emulated.
const INTERRUPT_SHADOW: u64 = 1;
/// DR7.GD: an access to a debug register is #DB, whose delivery clears the bit (section 13.1.1.4).
const DR7_GENERAL_DETECT: u64 = 1 << 13;
/// PAUSEs in a row that mean that a lock's holder does not run (section 15.14.4): far more than one takes that does.
const PAUSES_OF_A_SPIN: u16 = 4096;
/// PAUSEs further apart, in cycles, are not of one spin. CPUs without the threshold ignore it.
const CYCLES_BETWEEN_PAUSES: u16 = 128;
/// Reset value of the page attribute table register (section 7.8.2).
const PAT_AFTER_RESET: u64 = 0x0007_0406_0007_0406;
/// Bits of DR6 and DR7 that always read as one.
const DR6_AFTER_RESET: u64 = 0xffff_0ff0;
const DR7_AFTER_RESET: u64 = 0x400;

/// Where the tables are that a control block points to: physical addresses.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// I/O permission map.
    pub io_map: u64,
    /// MSR permission map.
    pub msr_map: u64,
    /// Root of the nested page tables.
    pub nested_root: u64,
}

/// What the world switch reads and writes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Switched {
    /// By [`Gpr`] number; RAX and RSP live in the control block.
    pub gprs: [u64; 16],
    /// Ticks of the time stamp counter that have passed in the guest while its time was counted.
    pub guest_ticks: u64,
    /// Its owner, for the CPU that interrupts the world switch.
    pub owner: Owner,
    /// SPEC_CTRL in the guest and in the host, for a world switch that exchanges it.
    pub spec_ctrl: SpecCtrl,
}

/// What the world switch writes to SPEC_CTRL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SpecCtrl {
    /// Before the entry.
    pub in_guest: u64,
    /// After the exit.
    pub in_host: u64,
}

// `switch.S` knows them by number.
const _: () = {
    assert!(core::mem::offset_of!(Switched, guest_ticks) == 16 * 8);
    assert!(core::mem::offset_of!(Switched, spec_ctrl) == 19 * 8);
};

/// Whose registers the world switch exchanges.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Owner {
    /// Physical address of the control block.
    pub vmcb: u64,
    /// The guest's number.
    pub guest: u32,
}

/// One vCPU. `B` is how the control block is held: a box in tests, a page with a known physical address on
/// the machine.
pub struct Vcpu<B> {
    vmcb: B,
    switched: Switched,
    /// The guest's time is to be counted, for its own counters.
    counts_time: bool,
    /// Likewise, for the host's.
    counts_time_for_host: bool,
    /// XCR0 as the guest has it; the hypervisor loads it.
    xcr0: u64,
    /// SPEC_CTRL as the guest has it, where VMRUN does not exchange it.
    spec_ctrl: u64,
    features: Features,
}

impl<B: DerefMut<Target = Vmcb>> Vcpu<B> {
    /// A CPU that will start in `entry`. `asid` is from 1 to [`Features::asids`].
    pub fn new(mut vmcb: B, features: Features, asid: u32, tables: Tables, entry: &EntryState) -> Self {
        *vmcb = Vmcb::zeroed();
        prepare_control(&mut vmcb, asid, tables);
        if features.pause_filter {
            filter_pauses(&mut vmcb);
        }
        prepare_save(&mut vmcb, entry);
        vmcb.save.g_pat = PAT_AFTER_RESET;
        let switched =
            Switched { gprs: entry.gprs, guest_ticks: 0, owner: Owner::default(), spec_ctrl: SpecCtrl::default() };
        Self { vmcb, switched, counts_time: false, counts_time_for_host: false, xcr0: 1, spec_ctrl: 0, features }
    }

    /// The registers that VMRUN does not load, for the world switch.
    pub fn switched_mut(&mut self) -> &mut Switched {
        &mut self.switched
    }

    /// Returns whether the world switch is to count the guest's time.
    pub fn counts_time(&self) -> bool {
        self.counts_time || self.counts_time_for_host
    }

    /// The control block.
    pub fn vmcb(&self) -> &Vmcb {
        &self.vmcb
    }

    /// How the control block is held.
    pub fn holder(&self) -> &B {
        &self.vmcb
    }

    /// It is on another CPU from now on, and has this address space identifier there: what was translated under
    /// it is flushed at the next entry, and nothing that the CPU has kept of this control block counts
    /// (section 15.15).
    pub fn arrive(&mut self, asid: u32) {
        self.vmcb.control.asid = asid;
        self.vmcb.control.clean = Clean::empty();
        self.flush_tlb();
    }

    /// Asks for a flush of this guest's translations at the next entry.
    pub fn flush_tlb(&mut self) {
        self.vmcb.control.tlb_control = if self.features.flush_by_asid { tlb::FLUSH_THIS_ASID } else { tlb::FLUSH_ALL };
    }

    /// Returns what the last run of the guest ended with. Call once after each #VMEXIT: it also takes back an event
    /// whose delivery the exit interrupted.
    pub fn after_exit(&mut self) -> Exit {
        let control = &mut self.vmcb.control;
        control.tlb_control = tlb::KEEP;
        control.clean = if self.features.clean_bits { Clean::all() } else { Clean::empty() };
        event::take_back(control, self.features.next_rip);
        code::decode(control)
    }

    fn touched(&mut self, part: Clean) {
        self.vmcb.control.clean.remove(part);
    }
}

fn prepare_control(vmcb: &mut Vmcb, asid: u32, tables: Tables) {
    let control = &mut vmcb.control;
    control.intercept_exceptions = intercept::EXCEPTIONS;
    control.intercept_misc1 = intercept::MISC1;
    control.intercept_misc2 = intercept::MISC2;
    control.iopm_base = tables.io_map;
    control.msrpm_base = tables.msr_map;
    control.asid = asid;
    control.tlb_control = tlb::FLUSH_ALL;
    control.virtual_interrupt = VirtualInterrupt::new().with_masking(true);
    control.nested_control = 1;
    control.nested_cr3 = tables.nested_root;
}

fn filter_pauses(vmcb: &mut Vmcb) {
    vmcb.control.intercept_misc1.insert(intercept::Misc1::PAUSE);
    vmcb.control.pause_filter_count = PAUSES_OF_A_SPIN;
    vmcb.control.pause_filter_threshold = CYCLES_BETWEEN_PAUSES;
}

fn prepare_save(vmcb: &mut Vmcb, entry: &EntryState) {
    let save = &mut vmcb.save;
    save.segments = [entry.data.into(); 6];
    save.segments[SegmentName::Cs as usize] = entry.cs.into();
    save.tr = entry.tr.into();
    save.ldtr = Segment { attributes: 0x82, limit: 0xffff, ..Segment::default() }.into();
    save.gdtr = VmcbSegment { selector: 0, attributes: 0, limit: entry.gdtr.limit.into(), base: entry.gdtr.base };
    save.idtr = VmcbSegment { selector: 0, attributes: 0, limit: entry.idtr.limit.into(), base: entry.idtr.base };
    save.efer = entry.efer | efer::SVME;
    (save.cr0, save.cr3, save.cr4) = (entry.cr0, entry.cr3, entry.cr4);
    (save.dr6, save.dr7) = (DR6_AFTER_RESET, DR7_AFTER_RESET);
    (save.rip, save.rsp, save.rflags) = (entry.rip, entry.rsp, entry.rflags | 2);
    save.rax = entry.gprs[Gpr::Rax as usize];
}

impl<B: DerefMut<Target = Vmcb>> VcpuState for Vcpu<B> {
    #[inline]
    fn gpr(&self, register: Gpr) -> u64 {
        match register {
            Gpr::Rax => self.vmcb.save.rax,
            Gpr::Rsp => self.vmcb.save.rsp,
            other => self.switched.gprs[other as usize],
        }
    }

    #[inline]
    fn set_gpr(&mut self, register: Gpr, value: u64) {
        match register {
            Gpr::Rax => self.vmcb.save.rax = value,
            Gpr::Rsp => self.vmcb.save.rsp = value,
            other => self.switched.gprs[other as usize] = value,
        }
    }

    #[inline]
    fn rip(&self) -> u64 {
        self.vmcb.save.rip
    }

    #[inline]
    fn set_rip(&mut self, rip: u64) {
        self.vmcb.save.rip = rip;
        self.vmcb.save.rflags &= !Rflags::RESUME.bits();
        self.vmcb.control.interrupt_shadow &= !INTERRUPT_SHADOW;
    }

    #[inline]
    fn rflags(&self) -> Rflags {
        Rflags::from_bits_retain(self.vmcb.save.rflags)
    }

    fn set_rflags(&mut self, rflags: Rflags) {
        self.vmcb.save.rflags = rflags.bits();
    }

    #[inline]
    fn cr0(&self) -> u64 {
        self.vmcb.save.cr0
    }

    fn cr2(&self) -> u64 {
        self.vmcb.save.cr2
    }

    #[inline]
    fn cr3(&self) -> u64 {
        self.vmcb.save.cr3
    }

    #[inline]
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

    #[inline]
    fn efer(&self) -> u64 {
        self.vmcb.save.efer & !efer::SVME
    }

    fn set_efer(&mut self, value: u64) {
        self.vmcb.save.efer = value | efer::SVME;
        self.touched(Clean::CONTROL_REGISTERS);
    }

    fn pat(&self) -> u64 {
        self.vmcb.save.g_pat
    }

    fn set_pat(&mut self, value: u64) {
        self.vmcb.save.g_pat = value;
        self.touched(Clean::NESTED_PAGING);
    }

    #[inline]
    fn segment(&self, name: SegmentName) -> Segment {
        match name {
            SegmentName::Ldtr => self.vmcb.save.ldtr.into(),
            SegmentName::Tr => self.vmcb.save.tr.into(),
            other => self.vmcb.save.segments[other as usize].into(),
        }
    }

    fn gdtr(&self) -> TableRegister {
        table_register(&self.vmcb.save.gdtr)
    }

    fn idtr(&self) -> TableRegister {
        table_register(&self.vmcb.save.idtr)
    }

    fn kernel_gs_base(&self) -> u64 {
        self.vmcb.save.kernel_gs_base
    }

    #[inline]
    fn cpl(&self) -> u8 {
        self.vmcb.save.cpl
    }

    #[inline]
    fn next_rip(&self) -> Option<u64> {
        self.features.next_rip.then_some(self.vmcb.control.next_rip)
    }

    fn instruction_bytes(&self) -> &[u8] {
        let control = &self.vmcb.control;
        let fetched = if self.features.decode_assists { control.bytes_fetched & 0xf } else { 0 };
        &control.instruction_bytes[..usize::from(fetched)]
    }

    #[inline]
    fn inject(&mut self, event: Event) {
        event::deliver(&mut self.vmcb.control, event);
        if let Event::Exception(Exception::PageFault { address, .. }) = event {
            self.vmcb.save.cr2 = address;
            self.touched(Clean::CR2);
        }
        if let Event::Exception(debug @ (Exception::Debug | Exception::SingleStep)) = event {
            self.vmcb.save.dr6 |= if debug == Exception::SingleStep { dr6::BS } else { 0 };
            self.vmcb.save.dr7 &= !DR7_GENERAL_DETECT;
            self.touched(Clean::DEBUG_REGISTERS);
        }
    }

    #[inline]
    fn event_pending(&self) -> bool {
        event::undelivered(&self.vmcb.control).is_valid()
    }

    #[inline]
    fn was_delivering(&self) -> bool {
        self.vmcb.control.exit_interrupt_info.is_valid()
    }

    #[inline]
    fn can_take_interrupt(&self) -> bool {
        !self.event_pending() && self.rflags().contains(Rflags::INTERRUPT) && !self.is_in_interrupt_shadow()
    }

    #[inline]
    fn is_in_interrupt_shadow(&self) -> bool {
        self.vmcb.control.interrupt_shadow & INTERRUPT_SHADOW != 0
    }

    #[inline]
    fn task_priority(&self) -> u8 {
        self.vmcb.control.virtual_interrupt.tpr() & 0xf
    }

    #[inline]
    fn set_task_priority(&mut self, priority: u8) {
        if self.task_priority() != priority & 0xf {
            let virtual_interrupt = self.vmcb.control.virtual_interrupt.with_tpr(priority & 0xf);
            self.vmcb.control.virtual_interrupt = virtual_interrupt;
            self.touched(Clean::VIRTUAL_INTERRUPT);
        }
    }

    #[inline]
    fn withdraw_interrupt(&mut self) -> Option<u8> {
        event::withdraw(&mut self.vmcb.control)
    }

    fn refusal(&self) -> Option<&'static str> {
        refusal::reason(&self.vmcb)
    }

    fn drop_event(&mut self) -> bool {
        event::drop_injection(&mut self.vmcb.control)
    }

    #[inline]
    fn request_interrupt_window(&mut self, wanted: bool) {
        event::request_window(&mut self.vmcb.control, wanted);
    }

    #[inline]
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
        self.vmcb.control.intercept_exceptions.set(intercept::FAULTS, wanted);
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

    #[inline]
    fn guest_ticks(&self) -> u64 {
        self.switched.guest_ticks
    }

    fn set_tsc_offset(&mut self, ticks: u64) {
        self.vmcb.control.tsc_offset = ticks;
        self.touched(Clean::INTERCEPTS);
    }

    fn reset(&mut self, entry: &EntryState) {
        prepare_save(&mut self.vmcb, entry);
        self.switched.gprs = entry.gprs;
        self.vmcb.save.cpl = 0;
        self.vmcb.save.cr2 = 0;
        self.set_spec_ctrl(0);
        self.vmcb.control.interrupt_shadow = 0;
        event::forget(&mut self.vmcb.control);
        self.vmcb.control.clean = Clean::empty();
        self.flush_tlb();
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
        if self.features.virtual_spec_ctrl {
            self.vmcb.save.spec_ctrl = value;
        } else {
            self.spec_ctrl = value;
        }
    }

    #[inline]
    fn xcr0(&self) -> u64 {
        self.xcr0
    }

    fn set_xcr0(&mut self, value: u64) {
        self.xcr0 = value;
    }
}

/// The block keeps 32 bits of a limit that has 16.
fn table_register(stored: &VmcbSegment) -> TableRegister {
    TableRegister { base: stored.base, limit: stored.limit as u16 }
}

#[cfg(test)]
#[path = "vcpu_tests.rs"]
mod tests;
