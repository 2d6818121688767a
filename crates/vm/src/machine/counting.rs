// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's performance counters: RDMSR, WRMSR, RDPMC, and interrupts when one overflows.
//!
//! By `soft` they count the guest's own time (`VcpuState::guest_ticks`), which stands still while it is not in the
//! CPU. Nothing signals an overflow, so the host's alarm is set for the earliest moment at which that can
//! be: now, and all that is left from now on in the guest. If the guest has been away meanwhile, the alarm comes too
//! early, and is set again. A CPU's counters interrupt the host by themselves, which then checks them as it does after
//! an alarm.

use alloc::vec::Vec;

use pmu::guest::{Config, Refused, Vendor, View};
use pmu::{SLOTS, Source, VcpuCounters};

use super::completion::{raise, usual};
use super::context::VcpuContext;
use super::{CountersSwitch, Cpu, Host, Machine, NEVER, Outcome};
use crate::cpu::msr::number::{DEBUG_CTL, PERF_CTL0, PERF_CTR3};
use crate::devices::lapic::Acceptance;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState, cr4};

/// An alarm comes so many ticks late on purpose: it is set before the guest is entered, and one that comes early comes
/// twice.
const LATE_TICKS: u64 = 512;

/// An overflow that is farther away than this, minutes, is searched for again by then.
const FAR_TICKS: u64 = 1 << 40;
/// The next overflow's time if it is farther away than that.
const FAR: u64 = u64::MAX - 1;

impl<M: GuestMemory> Machine<M> {
    /// Returns the vendor of the performance counters that CPUID shows.
    pub fn counters(&self) -> Option<Vendor> {
        self.cpuid.counters()
    }

    /// Returns whether a register is one of AMD's four legacy counters and their selects, in a guest without counters.
    /// No bit of CPUID hides them (AMD APM vol. 2, section 13.2.1): they read as zero and ignore what is written.
    fn is_idle_counter(&self, number: u32) -> bool {
        matches!(number, PERF_CTL0..=PERF_CTR3) && self.cpuid.is_amd() && self.cpuid.counters().is_none()
    }
}

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    /// RDMSR of a performance counter's register ([`MsrClass::Counters`](crate::cpu::msr::MsrClass)).
    #[cold]
    pub(super) fn counter_msr_read(&mut self, number: u32) -> Outcome {
        let ticks = self.vcpu.guest_ticks();
        let is_idle = number == DEBUG_CTL || self.machine.is_idle_counter(number);
        let nothing = if is_idle { Ok(0) } else { Err(Refused) };
        match self.cpu.read_counter_msr(number, ticks).or(nothing) {
            Ok(value) => self.done(usual::RDMSR, |vcpu| set_result(vcpu, value)),
            Err(Refused) => raise(self.vcpu, Exception::GeneralProtection(0)),
        }
    }

    /// WRMSR of such a register.
    #[cold]
    pub(super) fn counter_msr_write(&mut self, number: u32, value: u64) -> Outcome {
        let (ticks, was_counting) = (self.vcpu.guest_ticks(), self.cpu.counts());
        let is_taken = self.cpu.write_counter_msr(number, value, ticks).is_ok();
        if !is_taken && (number, value) != (DEBUG_CTL, 0) && !self.machine.is_idle_counter(number) {
            return raise(self.vcpu, Exception::GeneralProtection(0));
        }
        if is_taken && self.cpu.follow_counters(ticks, || self.host.tsc()) {
            self.cpu.arm(self.host);
        }
        let is_counting = self.cpu.counts();
        match self.done(usual::WRMSR, |_| ()) {
            Outcome::Resume if is_counting != was_counting => {
                self.vcpu.count_time(is_counting);
                Outcome::CountsOtherwise
            }
            outcome => outcome,
        }
    }

    /// RDPMC. In user mode it needs CR4.PCE.
    pub(super) fn counter_read(&mut self) -> Outcome {
        let is_allowed = self.vcpu.cpl() == 0 || self.vcpu.cr4() & cr4::PCE != 0;
        let (counter, ticks) = (self.vcpu.gpr(Gpr::Rcx) as u32, self.vcpu.guest_ticks());
        let found = if is_allowed { self.cpu.read_counter(counter, ticks) } else { Err(Refused) };
        match found {
            Ok(value) => self.done(usual::RDPMC, |vcpu| set_result(vcpu, value)),
            _ => raise(self.vcpu, Exception::GeneralProtection(0)),
        }
    }

    /// Raises the interrupts of counters that have overflowed by now, and sets the next alarm to the earliest next
    /// overflow: before [`Self::alarm`], which programs it; and when the guest has nothing to do, since it may have
    /// been about to be interrupted.
    #[inline]
    pub fn raise_overflows(&mut self) {
        if self.cpu.counts() {
            self.cpu.raise_overflows(self.vcpu.guest_ticks(), self.host.tsc());
        }
    }
}

impl Cpu {
    /// Gives it performance counters, after power-on.
    pub fn set_counters(&mut self, config: &Config, source: Source) {
        self.pmu = Some(VcpuCounters::new(config, source));
        self.note_counters();
    }

    /// Its performance counters.
    pub fn counters(&self) -> Option<&VcpuCounters> {
        self.pmu.as_ref()
    }

    /// Those of its performance counters that have an event, after so many ticks.
    pub fn counter_views(&mut self, ticks: u64) -> Vec<View> {
        let Some(pmu) = &mut self.pmu else { return Vec::new() };
        pmu.run_until(ticks);
        let views = (0..SLOTS).filter_map(|slot| pmu.view(slot)).collect();
        self.raise_overflow();
        views
    }

    /// Returns whether any of its performance counters counts.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.counts
    }

    /// It is switched in on a CPU: all counters of that CPU are its own meanwhile.
    #[inline]
    pub fn switch_counters_in(&mut self, vcpu: &(impl VcpuState + ?Sized)) {
        if self.counters_switch.opens {
            self.open_counters(vcpu.guest_ticks());
        }
    }

    #[inline(never)]
    fn open_counters(&mut self, ticks: u64) {
        if let Some(pmu) = &mut self.pmu {
            pmu.open(ticks);
        }
        self.note_counters();
    }

    /// Opens private counters of a restored vCPU, which is on no CPU yet.
    pub(super) fn open_private_counters(&mut self, ticks: u64) {
        if let Some(pmu) = &mut self.pmu {
            pmu.open_if_private(ticks);
        }
        self.note_counters();
    }

    /// It is switched out. Counters that hold no event stay as they are: there is nothing to be saved.
    #[inline]
    pub fn switch_counters_out(&mut self, vcpu: &(impl VcpuState + ?Sized)) {
        if self.counters_switch.closes {
            self.close_counters(vcpu.guest_ticks());
        }
    }

    #[inline(never)]
    fn close_counters(&mut self, ticks: u64) {
        if let Some(pmu) = &mut self.pmu {
            pmu.close(ticks);
        }
        self.note_counters();
        self.raise_overflow();
    }

    fn read_counter_msr(&mut self, number: u32, ticks: u64) -> Result<u64, Refused> {
        let value = self.pmu.as_mut().ok_or(Refused)?.read(number, ticks);
        self.raise_overflow();
        value
    }

    #[inline(always)]
    fn write_counter_msr(&mut self, number: u32, value: u64, ticks: u64) -> Result<(), Refused> {
        let pmu = self.pmu.as_mut().ok_or(Refused)?;
        pmu.write(number, value, ticks)?;
        (self.counts, self.counters_switch) = noted(pmu);
        Ok(())
    }

    /// Updates the flags that exits and switches check; after each possible change.
    #[inline(always)]
    fn note_counters(&mut self) {
        if let Some(pmu) = &self.pmu {
            (self.counts, self.counters_switch) = noted(pmu);
        }
    }

    fn read_counter(&mut self, counter: u32, ticks: u64) -> Result<u64, Refused> {
        let value = self.pmu.as_mut().ok_or(Refused)?.read_counter(counter, ticks);
        self.raise_overflow();
        value
    }

    #[cold]
    fn raise_overflows(&mut self, ticks: u64, now: u64) {
        if let Some(pmu) = &mut self.pmu {
            pmu.run_until(ticks);
            self.overflow_at = NEVER;
            self.overflow_alarm = None;
        }
        self.note_counters();
        self.follow_counters(ticks, || now);
    }

    /// Returns whether the next overflow is another one than before; then the alarm is to be set again.
    #[inline(always)]
    fn follow_counters(&mut self, ticks: u64, now: impl FnOnce() -> u64) -> bool {
        let Some(pmu) = &mut self.pmu else { return false };
        let (left, interrupts) = (pmu.ticks_to_overflow(), pmu.take_interrupt());
        if interrupts {
            self.interrupt();
        }
        let overflow_at = match left {
            None => NEVER,
            Some(left) if left < FAR_TICKS => ticks.wrapping_add(left),
            Some(_) => FAR,
        };
        if overflow_at == self.overflow_at {
            return false;
        }
        self.overflow_at = overflow_at;
        self.overflow_alarm = left.map(|left| now().saturating_add(left.min(FAR_TICKS)).saturating_add(LATE_TICKS));
        true
    }

    #[inline(always)]
    fn raise_overflow(&mut self) {
        if self.pmu.as_mut().is_some_and(|pmu| pmu.take_interrupt()) {
            self.interrupt();
        }
    }

    /// An overflow interrupts by the local APIC's entry for it.
    #[cold]
    fn interrupt(&mut self) {
        let masks = self.pmu.as_ref().is_some_and(|pmu| pmu.masks_interrupt());
        if self.lapic.raise_performance_interrupt(masks) == Acceptance::Nmi {
            self.nmi.request();
        }
    }
}

/// Returns whether anything counts, and what a switch has to do.
#[inline(always)]
fn noted(pmu: &VcpuCounters) -> (bool, CountersSwitch) {
    let bank = pmu.bank();
    let switch = CountersSwitch { opens: !bank.is_in(), closes: bank.is_in() && bank.is_used() };
    (bank.is_counting(), switch)
}

fn set_result(vcpu: &mut (impl VcpuState + ?Sized), value: u64) {
    vcpu.set_gpr(Gpr::Rax, value & 0xffff_ffff);
    vcpu.set_gpr(Gpr::Rdx, value >> 32);
}
