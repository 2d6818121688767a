// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU as the CPU that holds it sees it: arriving, switched in, running, switched out, leaving.

mod figures;
mod host;
mod moving;
mod running;
mod saving;
mod spinning;
mod touching;

use alloc::sync::Arc;

use sched::{Times, Weight};
use vm::machine::Cpu;
use vm::machine::context::VcpuContext;

use self::host::TaskHost;
use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::{Access, Called, Vcpu};
use crate::arch::{cpu, timer};
use crate::guests::forwarding::Next;
use crate::guests::freeze;
use crate::guests::instance::Instance;
use crate::guests::watching::Watched;

/// One vCPU.
pub struct Task {
    instance: Arc<Instance>,
    index: usize,
    vcpu: Vcpu,
    cpu: Cpu,
    host: TaskHost,
    watched: Watched,
    /// For how long others had the CPUs on which it was before, while it wanted to run.
    stolen_before: u64,
    /// For how long it has had the CPUs on which it was before.
    ran_before: u64,
    /// Since when it has been on the way to another CPU although it wants to run.
    left_at: Option<u64>,
    /// Since when its guest's upper limit has held it.
    held_since: Option<u64>,
    /// The event to note when it runs for the first time.
    first: Option<First>,
    /// The change of its guest's address space since which it has flushed its TLB.
    flushed: u64,
    /// Its weight where several share a CPU, as that CPU has it.
    weight: Weight,
}

/// The first time that a vCPU runs.
#[derive(Clone, Copy)]
enum First {
    /// Its guest has not executed anything: it is the one that begins.
    OfItsGuest,
    /// Its guest was handed over from the image before.
    InThisImage,
}

/// The reason for which [`Task::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The CPU has other work to do.
    Work,
    /// It waits for an interrupt.
    Idle,
    /// Its slice is over, or another vCPU's alarm is due.
    Alarm,
    /// It spins: others that wait for this CPU go first.
    Yield,
    /// It only spins, and sleeps until its alarm.
    Rest,
}

/// The end of a vCPU's wait for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WokenBy {
    /// Its timer, or the end of its rest.
    Alarm,
    /// The interrupt of another vCPU or of a device, in its mailbox.
    Message,
}

impl Task {
    /// A vCPU of a guest that has just been loaded.
    pub fn new(instance: Arc<Instance>, index: usize, vcpu: Vcpu, cpu: Cpu) -> Self {
        // Disks connect before their driver is there.
        let send_at = (index == 0 && instance.has_disks()).then_some(0);
        let host = TaskHost { guest: instance.guest.clone(), others_alarm: None, send_at, next: Next::default() };
        let watched = Watched::new(&instance.guest);
        let weight = instance.guest.settings.weight();
        let (stolen_before, ran_before, left_at) = (0, 0, None);
        let first = (index == 0).then_some(First::OfItsGuest);
        Self {
            instance,
            index,
            vcpu,
            cpu,
            host,
            watched,
            stolen_before,
            ran_before,
            left_at,
            held_since: None,
            first,
            flushed: 0,
            weight,
        }
    }

    /// Notes that it has run in the image before.
    pub fn note_handed_over(&mut self) {
        self.first = Some(First::InThisImage);
        // Packets of the guest that the image before has not forwarded.
        self.host.send_at = (self.index == 0).then_some(0);
    }

    /// The run of the guest that it belongs to.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// Its number in its guest.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its weight where several share a CPU.
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Takes its guest's weight if that has changed; returns the one before and this one.
    pub fn take_weight(&mut self) -> Option<(Weight, Weight)> {
        let (from, to) = (self.weight, self.instance.guest.settings.weight());
        self.weight = to;
        (from != to).then_some((from, to))
    }

    /// The CPU to which it belongs.
    pub fn own_cpu(&self) -> u32 {
        self.instance.guest.own_cpu(self.index)
    }

    /// Returns when its timer is due, on the host's time stamp counter.
    pub fn next_alarm(&self) -> Option<u64> {
        let awake = || self.cpu.next_alarm().into_iter().chain(self.host.send_at).min();
        self.watched.rests_until().or_else(awake)
    }

    /// Returns what may end its wait for an interrupt, if anything does.
    pub fn wakes_by(&mut self, now: u64) -> Option<WokenBy> {
        if let Some(until) = self.watched.rests_until() {
            return (now >= until).then(|| {
                self.watched.end_rest();
                self.note_allowed(now);
                WokenBy::Alarm
            });
        }
        if self.next_alarm().is_some_and(|alarm| alarm <= now) {
            self.context::<Called>().alarm();
            return Some(WokenBy::Alarm);
        }
        self.instance.machine.has_pending_messages(&self.cpu).then_some(WokenBy::Message)
    }

    /// Puts it on the calling CPU, where no other has this tag.
    pub fn arrive(&mut self, tag: u32) {
        self.vcpu.arrive(tag);
        let on_the_way = self.left_at.take().map_or(0, |left| cpu::tsc().saturating_sub(left));
        self.stolen_before = self.stolen_before.saturating_add(on_the_way);
    }

    /// It leaves the calling CPU for another, its registers saved; there its time went where `times` states. Until
    /// it arrives it waits, if it `wants_to_run`.
    pub fn depart(&mut self, times: Times, wants_to_run: bool) {
        self.vcpu.depart();
        self.stolen_before = self.stolen_before.saturating_add(times.stolen.0);
        self.ran_before = self.ran_before.saturating_add(times.running.0);
        self.left_at = wants_to_run.then(cpu::tsc);
    }

    /// Leaves the calling CPU, and goes on nowhere until it arrives again.
    pub fn leave_cpu(&mut self) {
        self.vcpu.depart();
    }

    /// Returns true if it is on no CPU.
    pub fn is_nowhere(&self) -> bool {
        self.vcpu.is_nowhere()
    }

    /// Loads its registers into the calling CPU, for which it has waited so long. The guest is shown how long it has
    /// waited in all.
    pub fn switch_in(&mut self, stolen_ticks: u64) {
        let stolen_ticks = self.stolen_before.saturating_add(stolen_ticks);
        if self.instance.machine.publish_steal(&mut self.cpu, timer::ticks_to_ns(stolen_ticks)) {
            self.vcpu.flush_tlb();
        }
        self.cpu.switch_counters_in(&*self.vcpu);
        self.vcpu.load();
    }

    /// Saves its registers from the calling CPU; `is_preempted` if it could still run.
    pub fn switch_out(&mut self, is_preempted: bool) {
        self.vcpu.unload();
        self.cpu.switch_counters_out(&*self.vcpu);
        if is_preempted {
            self.instance.machine.mark_preempted(&self.cpu);
        }
    }

    /// Flushes its TLB if something was taken out of its guest's address space.
    #[inline]
    pub fn follow_space(&mut self) {
        let changes = self.instance.space_changes();
        if self.flushed != changes {
            self.flushed = changes;
            self.vcpu.flush_tlb();
            self.instance.note_flushed(self.index, changes);
        }
    }

    /// Publishes its registers, to be read while its guest is paused.
    pub fn publish_registers(&self) {
        if let Some(registers) = self.instance.registers.get(self.index) {
            *registers.lock() = Some(freeze::registers_of(&*self.vcpu));
        }
    }

    /// Notes that it goes on after it stood still with its guest: its registers are not published any more.
    pub fn resume(&mut self) {
        self.watched.resume();
        self.held_since = None;
        self.instance.saving.discard(self.index);
        if let Some(registers) = self.instance.registers.get(self.index) {
            *registers.lock() = None;
        }
    }

    /// Polls its guest's console for input, and lets its devices continue their unfinished work.
    pub fn poll_devices(&mut self) {
        self.context::<Called>().poll_devices();
        if self.instance.works_when_polled() {
            self.host.send_at = Some(0);
        }
    }

    /// Leaves its guest's run.
    pub fn let_go(self) {
        let Self { instance, vcpu, cpu, .. } = self;
        drop((vcpu, cpu));
        Instance::let_go(instance);
    }

    #[inline(always)]
    fn context<A: Access>(&mut self) -> VcpuContext<'_, A::State, GuestRam, TaskHost> {
        self.instance.machine.context(A::registers(&mut self.vcpu), &mut self.cpu, &mut self.host)
    }
}
