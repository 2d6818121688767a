// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtual processor as a real one holds it: the loop from entry to exit and back.

mod figures;
mod moving;
mod spinning;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use sched::{Times, Weight};
use vm::devices::pvpanic::PanicEvent;
use vm::emulate::VectorWrite;
use vm::machine::{Host, Outcome, Processor, Stop};
use vm::vcpu::{Gpr, SegmentName, VcpuState};

use crate::arch::percpu::{self, PerCpu};
use crate::arch::virt::Vcpu;
use crate::arch::{clock, cpu, timer, vector};
use crate::guests::guest::Guest;
use crate::guests::instance::{Ending, Instance};
use crate::guests::watching::Watched;
use crate::guests::{freeze, pci};
use crate::kernel::timeline::{self, Name};
use crate::kernel::trial_pages;

/// A guest may ask for an alarm as near as it likes; the host's timer is never set nearer than this.
const NEAREST_ALARM_US: u64 = 2;

/// One virtual processor.
pub struct Task {
    instance: Arc<Instance>,
    index: usize,
    vcpu: Vcpu,
    processor: Processor,
    host: TaskHost,
    watched: Watched,
    /// For how long others had the processors on which it was before, while it wanted to run.
    stolen_before: u64,
    /// For how long it has had the processors on which it was before.
    ran_before: u64,
    /// Since when it has been on the way to another processor although it wants to run.
    left_at: Option<u64>,
    /// What is to be noted when it runs for the first time.
    first: Option<First>,
}

/// The first time that a virtual processor runs.
#[derive(Clone, Copy)]
enum First {
    /// Its guest has not executed anything: it is the one that begins.
    OfItsGuest,
    /// Its guest has come over from the image before.
    InThisImage,
}

/// Why [`Task::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The processor has other work to do.
    Work,
    /// It waits for an interrupt.
    Idle,
    /// Its slice is over, or another virtual processor's alarm is due.
    Alarm,
    /// It spins: others that wait for this processor go first.
    Yield,
    /// It only spins, and sleeps until its alarm.
    Rest,
}

/// What a virtual processor reaches of the host.
struct TaskHost {
    guest: &'static Guest,
    /// When the host's timer must fire whatever this virtual processor wants: the end of its slice, others' alarms.
    others_alarm: Option<u64>,
}

impl Task {
    /// A virtual processor of a guest that has just been loaded.
    pub fn new(instance: Arc<Instance>, index: usize, vcpu: Vcpu, processor: Processor) -> Self {
        let host = TaskHost { guest: instance.guest, others_alarm: None };
        let watched = Watched::new(&instance.guest.config);
        let (stolen_before, ran_before, left_at) = (0, 0, None);
        let first = (index == 0).then_some(First::OfItsGuest);
        Self { instance, index, vcpu, processor, host, watched, stolen_before, ran_before, left_at, first }
    }

    /// It has run in the image before.
    pub fn comes_over(&mut self) {
        self.first = Some(First::InThisImage);
    }

    /// The run of the guest that it belongs to.
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// Its number in its guest.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its weight where several share a processor.
    pub fn weight(&self) -> Weight {
        Weight::new(self.instance.guest.config.weight).unwrap_or_default()
    }

    /// The processor to which it belongs.
    pub fn own_processor(&self) -> u32 {
        self.instance.guest.own_processor(self.index)
    }

    /// When its timer is due, on the host's time stamp counter.
    pub fn next_alarm(&self) -> Option<u64> {
        self.watched.rests_until().or_else(|| self.processor.next_alarm())
    }

    /// Whether something may end its wait for an interrupt: mail from another virtual processor, or its timer.
    pub fn may_wake(&mut self, now: u64) -> bool {
        if let Some(until) = self.watched.rests_until() {
            if now >= until {
                self.watched.rises();
            }
            return now >= until;
        }
        if self.next_alarm().is_some_and(|alarm| alarm <= now) {
            self.instance.machine.alarm(&mut self.processor, &mut self.host);
            return true;
        }
        self.instance.machine.has_mail(&self.processor)
    }

    /// It arrives on the calling processor, where no other has this tag.
    pub fn arrive(&mut self, tag: u32) {
        self.vcpu.arrive(tag);
        let on_the_way = self.left_at.take().map_or(0, |left| cpu::tsc().saturating_sub(left));
        self.stolen_before = self.stolen_before.saturating_add(on_the_way);
    }

    /// It leaves the calling processor for another, its registers saved; there its time went where `times` says. Until
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

    /// Whether it is on no CPU.
    pub fn is_nowhere(&self) -> bool {
        self.vcpu.is_nowhere()
    }

    /// Its registers go into the calling processor, for which it has waited so long. The guest is told how long it has
    /// waited in all.
    pub fn switch_in(&mut self, stolen_ticks: u64) {
        let stolen_ticks = self.stolen_before.saturating_add(stolen_ticks);
        self.instance.machine.publish_steal(&mut self.processor, timer::ticks_to_ns(stolen_ticks));
        self.processor.switch_counters_in(&self.vcpu);
        self.vcpu.load();
    }

    /// Its registers leave the calling processor; `is_preempted` if it would rather go on.
    pub fn switch_out(&mut self, is_preempted: bool) {
        self.vcpu.unload();
        self.processor.switch_counters_out(&self.vcpu);
        if is_preempted {
            self.instance.machine.mark_preempted(&self.processor);
        }
    }

    /// Its guest has been paused: its registers can be read from now on.
    pub fn publish_registers(&self) {
        if let Some(registers) = self.instance.registers.get(self.index) {
            *registers.lock() = Some(freeze::registers_of(&self.vcpu));
        }
    }

    /// Its guest goes on.
    pub fn forget_registers(&self) {
        if let Some(registers) = self.instance.registers.get(self.index) {
            *registers.lock() = None;
        }
    }

    /// Its guest's console looks for what has been typed.
    pub fn console_input(&mut self) {
        self.instance.machine.console_input(&mut self.processor, &mut self.host);
    }

    /// It lets go of its guest.
    pub fn let_go(self) {
        let Self { instance, vcpu, processor, .. } = self;
        drop((vcpu, processor));
        Instance::let_go(instance);
    }

    /// [`Self::run`], whatever it does.
    fn run_until(&mut self, me: &PerCpu, others_alarm: Option<u64>) -> Pause {
        if self.first.is_some() && !me.work_pending.load(Ordering::Relaxed) {
            self.note_first(me.index);
        }
        let machine = &self.instance.machine;
        self.host.others_alarm = others_alarm;
        machine.settle_counters(&self.vcpu, &mut self.processor, &self.host);
        machine.alarm(&mut self.processor, &mut self.host);
        loop {
            if me.timer_fired.load(Ordering::Relaxed) {
                me.timer_fired.store(false, Ordering::Relaxed);
                if others_alarm.is_some_and(|alarm| alarm <= cpu::tsc()) {
                    // Its own is looked at when it is run again.
                    return Pause::Alarm;
                }
                machine.settle_counters(&self.vcpu, &mut self.processor, &self.host);
                machine.alarm(&mut self.processor, &mut self.host);
            }
            if !machine.prepare_entry(&mut self.vcpu, &mut self.processor, &mut self.host) {
                return Pause::Idle;
            }
            // Interrupts are masked from here to the entry, and one that comes then makes the guest leave at once.
            if me.work_pending.load(Ordering::Relaxed) {
                machine.cancel_entry(&mut self.vcpu, &mut self.processor);
                return Pause::Work;
            }
            let exit = self.vcpu.run();
            match machine.handle(exit, &mut self.vcpu, &mut self.processor, &mut self.host) {
                Outcome::Resume => {}
                Outcome::Idle => machine.settle_counters(&self.vcpu, &mut self.processor, &self.host),
                Outcome::CountsOtherwise => self.vcpu.choose_switch(),
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
                    self.tell_of_end(&stop);
                    self.instance.end(Ending::Own(stop));
                    return Pause::Work;
                }
            }
        }
    }

    /// It runs for the first time.
    #[cold]
    fn note_first(&mut self, processor: u32) {
        match self.first.take() {
            Some(First::OfItsGuest) => {
                pci::note_guest_runs();
                timeline::instant(Name::FirstGuestInstruction, self.instance.guest.number);
            }
            Some(First::InThisImage) => trial_pages::note_entered(processor),
            None => {}
        }
    }

    /// A guest that did not end of its own will: what its processor did goes to the log.
    #[cold]
    fn tell_of_end(&self, stop: &Stop) {
        if !matches!(stop, Stop::Fault(_) | Stop::TripleFault) {
            return;
        }
        let (vcpu, name, index) = (&self.vcpu, &self.instance.guest.config.name, self.index);
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
        percpu::kick(self.guest.processor_to_tell(vcpu));
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
