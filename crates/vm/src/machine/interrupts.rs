// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts on their way: from devices and local APICs to the guest's next entry.
//!
//! The guest does two things to its local APIC without an exit: it writes CR8, and it ends an interrupt by clearing the
//! flag of the paravirtual EOI. So the local APIC is out of date from an entry until `sync_apic`. These rules hold
//! then:
//!
//! - The CPU that reads or writes a register that depends on either calls `sync_apic` first; `prepare_entry` does as
//!   well, so nothing is acknowledged on old knowledge. Requesting a vector depends on neither.
//! - The flag is set in guest memory only while the guest runs, and only if exactly one interrupt is in service, it is
//!   edge-triggered and none is requested. Then its end can be late unnoticed; the next exit makes up for it. An
//!   interrupt that is requested meanwhile finds the offer resolved: used, or withdrawn.
//! - A vector is acknowledged only together with its injection, and at most one event is injected for each entry: an
//!   exception whose delivery the exit interrupted, else an NMI, else the highest vector. A vector that the guest has
//!   not taken when another event goes before it is requested again.
//! - Nothing waits without an exit to come: for interrupts to be enabled or an event before it to be delivered there is
//!   the window, for CR8 to be lowered the watch on it, for an end of interrupt the exit that it costs while no offer
//!   stands.
//! - An NMI waits for the IRET of the handler of the one before it, for a shadow of STI or a load of SS, and for an
//!   event before it. Each ends with an exit: see `nmi` and `step`.

use core::sync::atomic::Ordering;

use super::context::VcpuContext;
use super::mailbox::{Mailbox, PendingEvents};
use super::{Activity, Cpu, Host, Machine};
use crate::devices::GuestTsc;
use crate::exit::Exit;
use crate::memory::GuestMemory;
use crate::vcpu::{Event, VcpuState};

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    /// Prepares the next entry: messages of other CPUs, then the highest pending interrupt, or an exit as soon
    /// as the guest can take it. Returns whether the CPU may run; otherwise it waits for an interrupt.
    #[inline]
    pub fn prepare_entry(&mut self) -> bool {
        self.sync_apic();
        if self.machine.has_pending_messages(self.cpu) {
            self.reborrow().take_messages();
        }
        let (vcpu, cpu) = (&mut *self.vcpu, &mut *self.cpu);
        let has_nmis = cpu.nmi.wants_care();
        if has_nmis {
            cpu.offer_nmi(vcpu);
        }
        if cpu.lapic.pending().is_some() {
            cpu.offer_highest(vcpu);
        }
        vcpu.request_interrupt_window(cpu.lapic.pending().is_some());
        vcpu.watch_task_priority(cpu.lapic.waits_for_task_priority());
        cpu.offer_to_skip_eoi(&self.machine.memory);
        let runs = cpu.activity == Activity::Running || self.reborrow().wakes_up();
        if has_nmis && runs {
            self.reborrow().wait_for_nmi();
        }
        runs
    }

    /// The entry that was prepared does not come.
    #[cold]
    pub fn cancel_entry(&mut self) {
        if self.cpu.step.is_some() {
            let _ = self.cpu.end_step(Exit::HostInterrupt, self.vcpu);
        }
    }

    #[cold]
    fn take_messages(&mut self) {
        let Some(mailbox) = self.machine.mailbox_of(self.cpu) else { return };
        // A CPU that halts meanwhile is to see the messages, or their effects, or this count.
        self.machine.alive.fetch_add(1, Ordering::AcqRel);
        let events = mailbox.take(&mut self.cpu.lapic);
        if events != PendingEvents::default() {
            self.apply_events(events);
        }
        self.machine.alive.fetch_sub(1, Ordering::AcqRel);
    }

    /// Wakes a halted CPU if an event is about to be delivered. Returns whether it did.
    fn wakes_up(&mut self) -> bool {
        let wakes = self.cpu.activity != Activity::WaitingForStartup && self.vcpu.event_pending();
        if wakes {
            self.machine.set_activity(self.cpu, Activity::Running);
        }
        wakes
    }

    /// Provides the exit with which a waiting NMI comes, once the entry is prepared. Every condition that holds one
    /// back ends with an exit: the delivery of the event before it, the IRET of the handler of the one before it, the
    /// instruction in a shadow.
    #[cold]
    fn wait_for_nmi(&mut self) {
        let (vcpu, cpu) = (&mut *self.vcpu, &mut *self.cpu);
        let (is_returning, has_event) = (cpu.nmi.is_returning(), vcpu.event_pending());
        if is_returning && has_event {
            cpu.nmi.note_blocked();
            vcpu.watch_interrupt_return(true);
        } else if cpu.nmi.is_in_handler() || !is_returning && !cpu.nmi.is_pending() {
            // Its IRET exits, or none waits.
        } else if has_event {
            self.host.leave_at_once();
        } else if !cpu.begin_step(vcpu, &self.machine.memory) {
            cpu.nmi.poll_soon(self.host.tsc());
            cpu.arm(self.host);
        }
    }

    /// The CPU's alarm has gone off: its timer may be due.
    pub fn alarm(&mut self) {
        let now = self.cpu.now(self.host);
        self.cpu.lapic.expire_timer(now);
        self.cpu.nmi.note_polled();
        self.cpu.arm(self.host);
    }
}

impl<M: GuestMemory> Machine<M> {
    /// Returns whether messages of other CPUs are pending.
    #[inline]
    pub fn has_pending_messages(&self, cpu: &Cpu) -> bool {
        self.mailbox_of(cpu).is_some_and(Mailbox::has_pending)
    }

    /// Publishes the addresses of messages that this CPU answers to.
    #[inline]
    pub(super) fn publish_addressing(&self, cpu: &Cpu) {
        if let Some(mailbox) = self.mailbox_of(cpu) {
            mailbox.publish(cpu.lapic.addressing());
        }
    }

    #[inline]
    fn mailbox_of(&self, cpu: &Cpu) -> Option<&Mailbox> {
        self.mailboxes.get(cpu.lapic.id() as usize)
    }
}

impl Cpu {
    /// Offers the highest vector to the guest: it waits, and is above all that the guest has taken. It comes now, where
    /// the guest can take it.
    #[inline]
    fn offer_highest(&mut self, vcpu: &mut (impl VcpuState + ?Sized)) {
        if let Some(lower) = vcpu.withdraw_interrupt() {
            self.lapic.requeue(lower);
        }
        if vcpu.can_take_interrupt()
            && let Some(vector) = self.lapic.acknowledge()
        {
            vcpu.inject(Event::Interrupt(vector));
        }
    }

    /// Injects an NMI that waits, if it can come now.
    #[cold]
    fn offer_nmi(&mut self, vcpu: &mut (impl VcpuState + ?Sized)) {
        let can_come = self.nmi.is_open(vcpu.rip()) && self.nmi.is_pending() && !vcpu.is_in_interrupt_shadow();
        if can_come && let Some(vector) = vcpu.withdraw_interrupt() {
            self.lapic.requeue(vector);
        }
        if can_come && !vcpu.event_pending() {
            self.nmi.take();
            vcpu.inject(Event::Nmi);
            vcpu.watch_interrupt_return(true);
        }
    }

    /// Keeps the real alarm at the guest's next deadline. A guest may choose one that the host's time stamp counter
    /// never reaches: that alarm must not go off at once, again and again.
    pub(super) fn arm(&mut self, host: &mut impl Host) {
        let now = host.tsc();
        let left = |deadline: GuestTsc| deadline.0.saturating_sub(now.wrapping_add(self.tsc_offset));
        let timer = self.lapic.timer_deadline().map(|deadline| now.saturating_add(left(deadline)));
        self.alarm = timer.into_iter().chain(self.nmi.next_poll()).min();
        host.set_alarm(match self.overflow_alarm {
            None => self.alarm,
            Some(overflow) => Some(self.alarm.map_or(overflow, |alarm| alarm.min(overflow))),
        });
    }

    /// Brings the local APIC up to date with what the guest has done to it without an exit.
    #[inline]
    pub(super) fn sync_apic(&mut self, vcpu: &(impl VcpuState + ?Sized), memory: &impl GuestMemory) {
        self.follow_task_priority(vcpu);
        self.sync_eoi(memory);
    }

    /// Takes over CR8, which the guest writes without an exit, before the local APIC is accessed.
    #[inline]
    fn follow_task_priority(&mut self, vcpu: &(impl VcpuState + ?Sized)) {
        let class = vcpu.task_priority();
        if class != self.lapic.task_priority() {
            self.lapic.set_task_priority(class);
        }
    }

    /// Withdraws the offer to skip the EOI; if the guest has used it, the interrupt has ended. (KVM's paravirtual EOI,
    /// Linux Documentation/virt/kvm/x86/msr.rst: the guest clears the flag instead of writing the register.)
    #[inline]
    pub(super) fn sync_eoi(&mut self, memory: &impl GuestMemory) {
        if !self.eoi_flag_is_set {
            return;
        }
        self.eoi_flag_is_set = false;
        let Some(area) = self.eoi_flag.address() else { return };
        let mut flag = [0];
        if memory.read(area, &mut flag).is_err() {
            return;
        }
        if flag[0] & 1 == 0 {
            // The offer stands only for an edge-triggered interrupt: there is nothing more to do for its end.
            let _ = self.lapic.end_of_interrupt();
        } else {
            // The write went through before: the area is memory.
            let _ = memory.write(area, &[flag[0] & !1]);
        }
    }

    #[inline]
    fn offer_to_skip_eoi(&mut self, memory: &impl GuestMemory) {
        if let Some(area) = self.eoi_flag.address()
            && self.lapic.eoi_may_be_skipped()
        {
            self.eoi_flag_is_set = memory.write(area, &[1]).is_ok();
        }
    }
}
