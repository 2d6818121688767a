// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states a vCPU is in beside running, and how INIT and start-up move it between them
//! (Intel SDM vol. 3, section 9.4; AMD APM vol. 2, section 14.1).

use core::sync::atomic::Ordering;

use super::context::VcpuContext;
use super::mailbox::{Mailbox, PendingEvents};
use super::nmi::Nmi;
use super::{Activity, Cpu, Machine};
use crate::memory::GuestMemory;
use crate::vcpu::{AccessRights, EntryState, Segment, TableRegister, VcpuState, cr0};

const LIMIT_16: u32 = 0xffff;

impl EntryState {
    /// After a start-up interrupt: real mode, at the beginning of `page` (4 KiB each).
    pub fn at_startup_page(page: u8) -> Self {
        let segment =
            |selector: u16, rights| Segment { selector, rights, limit: LIMIT_16, base: u64::from(selector) << 4 };
        let table = TableRegister { base: 0, limit: 0xffff };
        Self {
            rip: 0,
            rsp: 0,
            rflags: 2,
            gprs: [0; 16],
            cr0: cr0::ET,
            cr3: 0,
            cr4: 0,
            efer: 0,
            cs: segment(u16::from(page) << 8, AccessRights::CODE_16),
            data: segment(0, AccessRights::DATA_16),
            tr: segment(0, AccessRights::BUSY_TASK),
            gdtr: table,
            idtr: table,
        }
    }
}

impl<V: VcpuState + ?Sized, M: GuestMemory, H> VcpuContext<'_, V, M, H> {
    /// Carries out the events that were found beside vectors.
    pub(super) fn apply_events(&mut self, events: PendingEvents) {
        if events.init {
            self.reset_to_init();
        }
        (0..events.early_nmis).for_each(|_| self.take_nmi());
        if let Some(page) = events.startup
            && self.cpu.activity == Activity::WaitingForStartup
        {
            self.vcpu.reset(&EntryState::at_startup_page(page));
            self.machine.set_activity(self.cpu, Activity::Running);
        }
        (0..events.late_nmis).for_each(|_| self.take_nmi());
        if events.unhalts {
            self.unhalt();
        }
    }

    /// Another CPU wakes this one, whether it has halted yet or not: it may be about to.
    fn unhalt(&mut self) {
        match self.cpu.activity {
            Activity::Halted | Activity::HaltedForGood => self.machine.set_activity(self.cpu, Activity::Running),
            Activity::Running => self.cpu.is_unhalted = true,
            Activity::WaitingForStartup => {}
        }
    }

    /// A CPU that waits for a start-up interrupt takes none.
    fn take_nmi(&mut self) {
        if self.cpu.activity != Activity::WaitingForStartup {
            self.cpu.nmi.request();
            if self.cpu.nmi.is_open(self.vcpu.rip()) {
                self.machine.set_activity(self.cpu, Activity::Running);
            }
        }
    }

    fn reset_to_init(&mut self) {
        self.vcpu.reset(&EntryState::at_startup_page(0));
        self.vcpu.request_interrupt_window(false);
        self.vcpu.set_task_priority(0);
        self.vcpu.watch_interrupt_return(false);
        self.cpu.nmi = Nmi::new();
        self.cpu.eoi_flag_is_set = false;
        self.cpu.is_unhalted = false;
        self.machine.set_activity(self.cpu, Activity::WaitingForStartup);
        self.machine.publish_addressing(self.cpu);
    }
}

impl<M: GuestMemory> Machine<M> {
    /// Returns whether a CPU runs, can be woken by an interrupt, or is about to find messages. A CPU that takes
    /// messages counts as alive until they are applied (see `take_messages`), and messages are searched for first: so
    /// they are not missed in between.
    pub(super) fn is_any_cpu_alive(&self) -> bool {
        self.mailboxes.iter().any(Mailbox::has_pending) || self.alive.load(Ordering::Acquire) > 0
    }

    /// Keeps count of the CPUs that something inside the guest can still wake.
    pub(super) fn set_activity(&self, cpu: &mut Cpu, activity: Activity) {
        let is_alive = |activity| matches!(activity, Activity::Running | Activity::Halted);
        match (is_alive(cpu.activity), is_alive(activity)) {
            (true, false) => drop(self.alive.fetch_sub(1, Ordering::AcqRel)),
            (false, true) => drop(self.alive.fetch_add(1, Ordering::AcqRel)),
            _ => {}
        }
        match (cpu.activity == Activity::HaltedForGood, activity == Activity::HaltedForGood) {
            (true, false) => drop(self.halted_for_good.fetch_sub(1, Ordering::AcqRel)),
            (false, true) => drop(self.halted_for_good.fetch_add(1, Ordering::AcqRel)),
            _ => {}
        }
        cpu.activity = activity;
    }
}
