// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop from a vCPU's entry to its exit and back.

use core::sync::atomic::Ordering;

use switch::Occasion;
use vm::machine::{Outcome, Stop};
use vm::vcpu::{Gpr, SegmentName};

use super::{First, Pause, Task};
use crate::arch::cpu;
use crate::arch::percpu::PerCpu;
use crate::arch::virt::{Access, Called, Inlined};
use crate::guests::device_interrupts::{self, Checking};
use crate::guests::instance::ending::Ending;
use crate::guests::networks;
use crate::guests::pci;
use crate::kernel::timeline::{self, Name};
use crate::kernel::trial_pages;

impl Task {
    /// [`Self::run`], whatever it does.
    pub(super) fn run_until(&mut self, me: &PerCpu, others_alarm: Option<u64>) -> Pause {
        if self.host.next.lingers {
            self.linger_on();
        }
        let pause = match self.vcpu.is_inlined() {
            true => self.run_by::<Inlined>(me, others_alarm),
            false => self.run_by_calls(me, others_alarm),
        };
        if self.host.next.lingers {
            self.send_before_pause(&pause);
        }
        pause
    }

    /// The guest does not execute for a while: what it has sent does not wait for that. It notifies its devices again,
    /// unless it has one vCPU, which goes on where it was.
    #[cold]
    fn send_before_pause(&mut self, pause: &Pause) {
        let goes_on = matches!(pause, Pause::Work | Pause::Alarm | Pause::Yield);
        if goes_on && self.instance.guest.config.vcpus == 1 {
            return self.send(Occasion::Preempted);
        }
        for _ in 0..2 {
            if self.host.next.lingers {
                self.send(Occasion::Idle);
            }
        }
    }

    fn send(&mut self, occasion: Occasion) {
        self.host.next = self.instance.send(self.index, occasion, self.host.others_alarm.unwrap_or(u64::MAX));
        self.host.send_at = self.host.next.at();
    }

    /// The guest executes again: it has sent nothing meanwhile.
    #[cold]
    fn linger_on(&mut self) {
        // Something else may be there to be sent at once.
        let is_as_decided = self.host.send_at == self.host.next.at();
        self.host.next.frames = Some(networks::linger_until());
        if is_as_decided {
            self.host.send_at = self.host.next.at();
        }
    }

    #[cold]
    #[inline(never)]
    fn run_by_calls(&mut self, me: &PerCpu, others_alarm: Option<u64>) -> Pause {
        self.run_by::<Called>(me, others_alarm)
    }

    #[inline(always)]
    fn run_by<A: Access>(&mut self, me: &PerCpu, others_alarm: Option<u64>) -> Pause {
        if self.first.is_some() && !me.calls.are_any() {
            self.note_first(me.index);
        }
        self.host.others_alarm = others_alarm;
        self.context::<A>().raise_overflows();
        self.context::<A>().alarm();
        loop {
            device_interrupts::deliver_raised(me, Checking::Entered(&self.instance, self.index));
            if me.timer_fired.load(Ordering::Relaxed) {
                me.timer_fired.store(false, Ordering::Relaxed);
                if others_alarm.is_some_and(|alarm| alarm <= cpu::tsc()) {
                    // Its own is checked when it is run again.
                    return Pause::Alarm;
                }
                self.context::<A>().raise_overflows();
                self.context::<A>().alarm();
            }
            if self.host.send_at.is_some() {
                self.send_due();
            }
            if !self.context::<A>().prepare_entry() {
                return Pause::Idle;
            }
            // Interrupts are masked from here to the entry, and one that comes then makes the guest leave at once.
            if me.calls.are_any() {
                self.context::<A>().cancel_entry();
                return Pause::Work;
            }
            let exit = A::run(&mut self.vcpu);
            match self.context::<A>().handle(exit) {
                Outcome::Resume => {}
                Outcome::Idle => self.context::<A>().raise_overflows(),
                Outcome::CountsOtherwise => self.vcpu.choose_switch(),
                Outcome::Yield => return Pause::Yield,
                Outcome::HostInterrupt => {
                    self.host.guest.flush_console();
                    cpu::take_pending_interrupts();
                }
                Outcome::Touched(gpa) => {
                    if let Some(pause) = self.touch(gpa) {
                        return pause;
                    }
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

    /// Forwards what the guest has sent, if its time has come: a bounded number of frames.
    #[cold]
    fn send_due(&mut self) {
        if self.host.send_at.is_some_and(|at| at <= cpu::tsc()) {
            self.send(Occasion::Due);
            // Where there are more the alarm is for them, too.
            self.context::<Called>().alarm();
        }
    }

    /// Notes that it runs for the first time.
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
