// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU as a real one holds it: the loop from entry to exit and back.

mod figures;
mod moving;
mod spinning;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use sched::{Times, Weight};
use vm::devices::pvpanic::PanicEvent;
use vm::emulate::VectorWrite;
use vm::machine::{Cpu, Host, Outcome, Stop};
use vm::vcpu::{Gpr, SegmentName, VcpuState};

use crate::arch::percpu::{self, PerCpu};
use crate::arch::virt::Virt;
use crate::arch::{clock, cpu, timer, vector};
use crate::guests::guest::Guest;
use crate::guests::instance::{Ending, Instance};
use crate::guests::watching::Watched;
use crate::guests::{freeze, pci};
use crate::kernel::timeline::{self, Name};
use crate::kernel::trial_pages;

/// A guest may ask for an alarm as near as it likes; the host's timer is never set nearer than this.
const NEAREST_ALARM_US: u64 = 2;

/// One vCPU.
pub struct Task<V: Virt> {
    instance: Arc<Instance<V>>,
    index: usize,
    vcpu: V::Vcpu,
    cpu: Cpu,
    host: TaskHost,
    watched: Watched,
    /// For how long others had the CPUs on which it was before, while it wanted to run.
    stolen_before: u64,
    /// For how long it has had the CPUs on which it was before.
    ran_before: u64,
    /// Since when it has been on the way to another CPU although it wants to run.
    left_at: Option<u64>,
    /// The event to note when it runs for the first time.
    first: Option<First>,
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

/// The part of the host that a vCPU reaches.
struct TaskHost {
    guest: &'static Guest,
    /// The time at which the host's timer must fire whatever this vCPU wants: the end of its slice, others' alarms.
    others_alarm: Option<u64>,
}

impl<V: Virt> Task<V> {
    /// A vCPU of a guest that has just been loaded.
    pub fn new(instance: Arc<Instance<V>>, index: usize, vcpu: V::Vcpu, cpu: Cpu) -> Self {
        let host = TaskHost { guest: instance.guest, others_alarm: None };
        let watched = Watched::new(&instance.guest.config);
        let (stolen_before, ran_before, left_at) = (0, 0, None);
        let first = (index == 0).then_some(First::OfItsGuest);
        Self { instance, index, vcpu, cpu, host, watched, stolen_before, ran_before, left_at, first }
    }

    /// It has run in the image before.
    pub fn note_handed_over(&mut self) {
        self.first = Some(First::InThisImage);
    }

    /// The run of the guest that it belongs to.
    pub fn instance(&self) -> &Arc<Instance<V>> {
        &self.instance
    }

    /// Its number in its guest.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its weight where several share a CPU.
    pub fn weight(&self) -> Weight {
        Weight::new(self.instance.guest.config.weight).unwrap_or_default()
    }

    /// The CPU to which it belongs.
    pub fn own_cpu(&self) -> u32 {
        self.instance.guest.own_cpu(self.index)
    }

    /// Returns when its timer is due, on the host's time stamp counter.
    pub fn next_alarm(&self) -> Option<u64> {
        self.watched.rests_until().or_else(|| self.cpu.next_alarm())
    }

    /// Returns whether something may end its wait for an interrupt: mail from another vCPU, or its timer.
    pub fn may_wake(&mut self, now: u64) -> bool {
        if let Some(until) = self.watched.rests_until() {
            if now >= until {
                self.watched.end_rest();
            }
            return now >= until;
        }
        if self.next_alarm().is_some_and(|alarm| alarm <= now) {
            self.instance.machine.alarm(&mut self.cpu, &mut self.host);
            return true;
        }
        self.instance.machine.has_mail(&self.cpu)
    }

    /// It arrives on the calling CPU, where no other has this tag.
    pub fn arrive(&mut self, virt: V, tag: u32) {
        virt.arrive(&mut self.vcpu, tag);
        let on_the_way = self.left_at.take().map_or(0, |left| cpu::tsc().saturating_sub(left));
        self.stolen_before = self.stolen_before.saturating_add(on_the_way);
    }

    /// It leaves the calling CPU for another, its registers saved; there its time went where `times` states. Until
    /// it arrives it waits, if it `wants_to_run`.
    pub fn depart(&mut self, times: Times, wants_to_run: bool) {
        self.stolen_before = self.stolen_before.saturating_add(times.stolen.0);
        self.ran_before = self.ran_before.saturating_add(times.running.0);
        self.left_at = wants_to_run.then(cpu::tsc);
    }

    /// Its registers go into the calling CPU, for which it has waited so long. The guest is shown how long it has
    /// waited in all.
    pub fn switch_in(&mut self, virt: V, stolen_ticks: u64) {
        let stolen_ticks = self.stolen_before.saturating_add(stolen_ticks);
        self.instance.machine.publish_steal(&mut self.cpu, timer::ticks_to_ns(stolen_ticks));
        self.cpu.switch_counters_in(&*self.vcpu);
        virt.load(&mut self.vcpu);
    }

    /// Its registers leave the calling CPU; `is_preempted` if it would rather go on.
    pub fn switch_out(&mut self, virt: V, is_preempted: bool) {
        virt.unload(&mut self.vcpu);
        self.cpu.switch_counters_out(&*self.vcpu);
        if is_preempted {
            self.instance.machine.mark_preempted(&self.cpu);
        }
    }

    /// Its guest has been paused: its registers can be read from now on.
    pub fn publish_registers(&self) {
        if let Some(registers) = self.instance.registers.get(self.index) {
            *registers.lock() = Some(freeze::registers_of(&*self.vcpu));
        }
    }

    /// Its guest goes on.
    pub fn forget_registers(&self) {
        if let Some(registers) = self.instance.registers.get(self.index) {
            *registers.lock() = None;
        }
    }

    /// Its guest's console searches for what has been typed.
    pub fn console_input(&mut self) {
        self.instance.machine.console_input(&mut self.cpu, &mut self.host);
    }

    /// It lets go of its guest.
    pub fn let_go(self) {
        let Self { instance, vcpu, cpu, .. } = self;
        drop((vcpu, cpu));
        Instance::let_go(instance);
    }

    /// [`Self::run`], whatever it does.
    fn run_until(&mut self, virt: V, me: &PerCpu, others_alarm: Option<u64>) -> Pause {
        if self.first.is_some() && !me.work_pending.load(Ordering::Relaxed) {
            self.note_first(me.index);
        }
        let machine = &self.instance.machine;
        self.host.others_alarm = others_alarm;
        machine.raise_overflows(&*self.vcpu, &mut self.cpu, &self.host);
        machine.alarm(&mut self.cpu, &mut self.host);
        loop {
            if me.timer_fired.load(Ordering::Relaxed) {
                me.timer_fired.store(false, Ordering::Relaxed);
                if others_alarm.is_some_and(|alarm| alarm <= cpu::tsc()) {
                    // Its own is checked when it is run again.
                    return Pause::Alarm;
                }
                machine.raise_overflows(&*self.vcpu, &mut self.cpu, &self.host);
                machine.alarm(&mut self.cpu, &mut self.host);
            }
            if !machine.prepare_entry(&mut *self.vcpu, &mut self.cpu, &mut self.host) {
                return Pause::Idle;
            }
            // Interrupts are masked from here to the entry, and one that comes then makes the guest leave at once.
            if me.work_pending.load(Ordering::Relaxed) {
                machine.cancel_entry(&mut *self.vcpu, &mut self.cpu);
                return Pause::Work;
            }
            let exit = virt.run(&mut self.vcpu);
            match machine.handle(exit, &mut *self.vcpu, &mut self.cpu, &mut self.host) {
                Outcome::Resume => {}
                Outcome::Idle => machine.raise_overflows(&*self.vcpu, &mut self.cpu, &self.host),
                Outcome::CountsOtherwise => virt.choose_switch(&mut self.vcpu),
                Outcome::Yield => return Pause::Yield,
                Outcome::HostInterrupt => {
                    self.host.guest.flush_console();
                    cpu::take_pending_interrupts();
                }
                Outcome::MachineCheck => {
                    if self.instance.is_ended_by_machine_check() {
                        return Pause::Work;
                    }
                }
                Outcome::Stop(stop) => {
                    self.report_end(&stop);
                    self.instance.end(Ending::Own(stop));
                    return Pause::Work;
                }
            }
        }
    }

    /// It runs for the first time.
    #[cold]
    fn note_first(&mut self, cpu: u32) {
        match self.first.take() {
            Some(First::OfItsGuest) => {
                pci::note_guest_runs();
                timeline::instant(Name::FirstGuestInstruction, self.instance.guest.number);
            }
            Some(First::InThisImage) => trial_pages::note_entered(cpu),
            None => {}
        }
    }

    /// A guest that did not end of its own will: what its CPU did goes to the log.
    #[cold]
    fn report_end(&self, stop: &Stop) {
        if !matches!(stop, Stop::Fault(_) | Stop::TripleFault) {
            return;
        }
        let (vcpu, name, index) = (&*self.vcpu, &self.instance.guest.config.name, self.index);
        let rax = vcpu.gpr(Gpr::Rax);
        log::error!(
            "guest {name}: vCPU {index}: rip {:#x} rflags {:#x} rax {rax:#x} rsp {:#x}",
            vcpu.rip(),
            vcpu.rflags(),
            vcpu.gpr(Gpr::Rsp),
        );
        log::error!(
            "guest {name}: vCPU {index}: cr0 {:#x} cr2 {:#x} cr3 {:#x} cr4 {:#x} efer {:#x} cs {:#x} idt {:#x}",
            vcpu.cr0(),
            vcpu.cr2(),
            vcpu.cr3(),
            vcpu.cr4(),
            vcpu.efer(),
            vcpu.segment(SegmentName::Cs).selector,
            vcpu.idtr().base,
        );
    }
}

impl Host for TaskHost {
    #[inline]
    fn tsc(&self) -> u64 {
        cpu::tsc()
    }

    fn unix_seconds(&self) -> u64 {
        clock::unix_ns() / 1_000_000_000
    }

    fn console(&mut self, byte: u8) {
        self.guest.console_output(byte);
    }

    fn console_input(&mut self) -> Option<u8> {
        self.guest.console_typed()
    }

    #[inline]
    fn kick(&mut self, vcpu: usize) {
        percpu::kick(self.guest.cpu_to_tell(vcpu));
    }

    fn leave_at_once(&mut self) {
        percpu::interrupt_self();
    }

    #[inline]
    fn set_alarm(&mut self, deadline: Option<u64>) {
        let earliest = match (deadline, self.others_alarm) {
            (Some(own), Some(others)) => Some(own.min(others)),
            (own, others) => own.or(others),
        };
        match earliest {
            Some(alarm) => timer::set_alarm(alarm.max(cpu::tsc() + timer::us_to_ticks(NEAREST_ALARM_US))),
            None => timer::clear_alarm(),
        }
    }

    fn panicked(&mut self, event: PanicEvent) {
        if event == PanicEvent::Panicked {
            self.guest.reports_panic();
        }
    }

    fn vector(&self, register: u8) -> [u64; 4] {
        vector::read(register)
    }

    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite) {
        vector::write(register, value, write);
    }
}
