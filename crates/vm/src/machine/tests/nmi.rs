// SPDX-License-Identifier: MIT OR Apache-2.0
//! One NMI at a time, until its handler's IRET has been executed.
use super::interrupts::{edge, nmi};
use super::*;
use crate::vcpu::{VcpuState, dr6};

/// Addresses of the handler and of its IRET.
const HANDLER: u64 = 0x2000;
const IRET: u64 = 0x2010;

/// A guest that has just entered its NMI handler.
fn in_handler() -> Lab {
    let mut lab = Lab::new();
    lab.send_nmi();
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.vcpu.rip = HANDLER;
    lab
}

impl Lab {
    fn send_nmi(&mut self) {
        self.send(&nmi());
    }

    /// The guest comes to the IRET of its handler.
    fn comes_to_iret(&mut self) {
        self.vcpu.rip = IRET;
        assert_eq!(self.handle(Exit::InterruptReturn), Outcome::Resume);
    }

    /// The guest executes the IRET and returns to RIP, with these flags; it has been entered.
    fn returns(&mut self, flags: Rflags) -> Outcome {
        (self.vcpu.rip, self.vcpu.rflags) = (RIP, flags.bits());
        self.vcpu.dr6 |= dr6::BS;
        self.handle(Exit::Exception(Exception::Debug))
    }

    /// The same from the exit at the IRET.
    fn ends_handler(&mut self) {
        self.comes_to_iret();
        assert_eq!(self.enter(), None);
        assert_eq!(self.returns(Rflags::empty()), Outcome::Resume);
    }

    /// Returns whether the next instruction is stepped over.
    fn steps(&self) -> bool {
        let steps = self.vcpu.faults_watched;
        assert_eq!(steps, self.cpu.step.is_some());
        assert!(!steps || self.vcpu.rflags().contains(Rflags::TRAP));
        steps
    }
}

#[test]
fn an_nmi_waits_for_the_end_of_the_handler_of_the_one_before_it() {
    let mut lab = in_handler();
    assert!(lab.vcpu.interrupt_return_watched);
    lab.send_nmi();
    lab.send_nmi();
    assert_eq!(lab.enter(), None);
    assert!(!lab.vcpu.window_requested && !lab.steps(), "the handler's IRET exits");
    lab.comes_to_iret();
    assert!(!lab.vcpu.interrupt_return_watched);
    assert_eq!(lab.enter(), None, "it has not returned yet");
    assert!(lab.steps());
    assert_eq!(lab.returns(Rflags::empty()), Outcome::Resume);
    assert_eq!(lab.enter(), Some(Event::Nmi), "right behind the IRET");
    lab.ends_handler();
    assert_eq!(lab.enter(), None, "two that wait in a handler are one");
    assert_eq!(lab.host.alarm, None, "nothing is left to chance");
}

#[test]
fn where_the_cpu_reports_the_end_of_the_handler_the_next_nmi_comes_without_a_step() {
    let mut lab = in_handler();
    lab.send_nmi();
    assert_eq!(lab.enter(), None);
    lab.vcpu.rip = RIP;
    assert_eq!(lab.handle(Exit::NmiWindow), Outcome::Resume);
    assert!(!lab.vcpu.interrupt_return_watched, "nothing is left to be reported");
    assert_eq!(lab.enter(), Some(Event::Nmi));
    assert!(!lab.steps() && lab.vcpu.interrupt_return_watched);
}

#[test]
fn of_two_nmis_one_is_taken_and_one_waits() {
    let mut lab = Lab::new();
    (0..3).for_each(|_| lab.send_nmi());
    assert_eq!(lab.enter(), Some(Event::Nmi));
    assert_eq!(lab.enter(), None);
    lab.ends_handler();
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.ends_handler();
    assert_eq!(lab.enter(), None, "a third one is the second");
}

#[test]
fn two_nmis_from_others_are_two() {
    let mut lab = Lab::new();
    for _ in 0..3 {
        lab.machine.mailboxes[0].post(&nmi());
    }
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.ends_handler();
    assert_eq!(lab.enter(), Some(Event::Nmi));
    lab.ends_handler();
    assert_eq!(lab.enter(), None);
}

#[test]
fn a_second_nmi_is_there_in_the_next_image() {
    let mut sent = Lab::new();
    (0..2).for_each(|_| sent.send_nmi());
    let posted = Lab::new();
    for _ in 0..2 {
        posted.machine.mailboxes[0].post(&nmi());
    }
    for lab in [sent, posted] {
        let mut carried = lab.carried();
        assert_eq!(carried.hand_over(), lab.hand_over());
        assert_eq!(carried.enter(), Some(Event::Nmi));
        let mut carried = carried.carried();
        carried.ends_handler();
        assert_eq!(carried.enter(), Some(Event::Nmi));
    }
}

#[test]
fn the_guest_sees_nothing_of_the_step_over_its_iret() {
    for (loaded, dr6_before) in [(Rflags::empty(), 0xffff_0ff0), (Rflags::TRAP | Rflags::INTERRUPT, 0xffff_4ff1)] {
        let mut lab = in_handler();
        lab.vcpu.dr6 = dr6_before;
        lab.comes_to_iret();
        lab.enter();
        assert!(lab.steps());
        assert_eq!(lab.vcpu.dr6 & 0xe00f, 0, "what is met in the step is known");
        lab.returns(loaded);
        assert_eq!(lab.vcpu.rflags, loaded.bits(), "the flags are those that IRET has loaded");
        assert_eq!((lab.vcpu.dr6, lab.vcpu.faults_watched, lab.vcpu.injected), (dr6_before, false, None));
    }
}

#[test]
fn a_guest_that_steps_over_its_iret_gets_its_debug_exception_and_then_the_nmi() {
    let mut lab = in_handler();
    lab.send_nmi();
    lab.vcpu.rflags |= Rflags::TRAP.bits();
    lab.comes_to_iret();
    lab.enter();
    lab.returns(Rflags::empty());
    assert_eq!(lab.vcpu.dr6 & dr6::BS, dr6::BS);
    assert_eq!(lab.enter(), Some(Event::Exception(Exception::Debug)));
    assert_eq!(lab.host.left_at_once, 1, "the exit behind the delivery");
    lab.handle(Exit::HostInterrupt);
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

#[test]
fn a_watchpoint_on_the_frame_of_the_iret_is_the_guests() {
    let mut lab = in_handler();
    lab.vcpu.dr7 = 0x402;
    lab.comes_to_iret();
    lab.enter();
    lab.vcpu.dr6 |= 1;
    lab.returns(Rflags::empty());
    assert_eq!(lab.vcpu.dr6 & (dr6::BS | 1), 1, "its own cause alone");
    assert_eq!(lab.enter(), Some(Event::Exception(Exception::Debug)));
}

#[test]
fn an_iret_that_faults_ends_the_handler_and_its_frame_has_no_trap_flag() {
    let fault = Exception::Fault { vector: 12, code: Some(0x18) };
    let mut lab = in_handler();
    lab.send_nmi();
    lab.comes_to_iret();
    lab.enter();
    assert!(lab.steps());
    lab.handle(Exit::Exception(fault));
    assert!(!lab.vcpu.rflags().contains(Rflags::TRAP) && !lab.vcpu.faults_watched);
    assert_eq!(lab.enter(), Some(Event::Exception(fault)));
    assert_eq!(lab.host.left_at_once, 1);
    lab.handle(Exit::HostInterrupt);
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

#[test]
fn an_exit_before_the_iret_ends_the_step_and_the_next_entry_begins_it_again() {
    let mut lab = in_handler();
    lab.comes_to_iret();
    let before = lab.vcpu.clone();
    for _ in 0..2 {
        lab.enter();
        assert!(lab.steps());
        assert_eq!(lab.handle(Exit::HostInterrupt), Outcome::HostInterrupt);
        assert!(!lab.steps());
        assert_eq!((lab.vcpu.rflags, lab.vcpu.dr6), (before.rflags, before.dr6));
    }
    lab.enter();
    lab.context().cancel_entry();
    assert!(!lab.steps());
    assert_eq!((lab.vcpu.rflags, lab.vcpu.dr6), (before.rflags, before.dr6), "an entry that does not come");
}

#[test]
fn an_interrupt_before_the_iret_keeps_the_handler_going() {
    let mut lab = in_handler();
    lab.comes_to_iret();
    lab.send(&edge(0x41));
    assert_eq!(lab.take_interrupt(), Some(0x41));
    lab.vcpu.rip = 0x3000;
    lab.send_nmi();
    assert_eq!(lab.enter(), None, "the IRET has not been executed");
    assert!(lab.vcpu.interrupt_return_watched);
    lab.ends_handler();
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

#[test]
fn a_breakpoint_on_the_iret_keeps_the_handler_going() {
    let mut lab = in_handler();
    lab.send_nmi();
    lab.vcpu.dr7 = 0x402;
    lab.comes_to_iret();
    lab.enter();
    lab.vcpu.dr6 |= 1;
    lab.handle(Exit::Exception(Exception::Debug));
    assert_eq!(lab.enter(), Some(Event::Exception(Exception::Debug)));
    assert!(lab.vcpu.interrupt_return_watched);
    lab.vcpu.rip = 0x3000;
    assert_eq!(lab.enter(), None, "not before an IRET");
}

#[test]
fn an_nmi_waits_for_the_end_of_a_shadow() {
    let mut lab = Lab::new();
    lab.at(&[0x48, 0x89, 0xc4]);
    lab.vcpu.is_in_interrupt_shadow = true;
    lab.send_nmi();
    assert_eq!(lab.enter(), None);
    assert!(lab.steps());
    lab.vcpu.rip += 3;
    lab.vcpu.is_in_interrupt_shadow = false;
    lab.vcpu.dr6 |= dr6::BS;
    assert_eq!(lab.handle(Exit::Exception(Exception::Debug)), Outcome::Resume);
    assert!(!lab.vcpu.rflags().contains(Rflags::TRAP));
    assert_eq!(lab.enter(), Some(Event::Nmi), "right behind the instruction");
}

#[test]
fn an_instruction_in_a_shadow_that_would_show_the_trap_flag_is_waited_for() {
    let mut lab = Lab::new();
    lab.at(&[0x9c]);
    lab.vcpu.is_in_interrupt_shadow = true;
    lab.send_nmi();
    assert_eq!(lab.enter(), None);
    assert!(!lab.steps());
    let alarm = lab.host.alarm.expect("a poll");
    assert!(alarm - lab.host.tsc <= 1 << 14);
    lab.vcpu.is_in_interrupt_shadow = false;
    lab.pass(alarm - lab.host.tsc);
    assert_eq!(lab.enter(), Some(Event::Nmi));
    assert_eq!(lab.host.alarm, None);
}

#[test]
fn an_nmi_behind_an_event_comes_when_that_has_been_delivered() {
    let mut lab = Lab::new();
    lab.vcpu.injected = Some(Event::Exception(Exception::InvalidOpcode));
    lab.send_nmi();
    assert_eq!(lab.enter(), Some(Event::Exception(Exception::InvalidOpcode)));
    assert_eq!((lab.host.left_at_once, lab.host.alarm), (1, None));
    lab.handle(Exit::HostInterrupt);
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

/// 0.1.0 hands over a CPU that it checks, and not where.
#[test]
fn a_cpu_that_an_older_image_saw_returning_goes_on() {
    for (rip, opens) in [(IRET, false), (RIP, true)] {
        let mut lab = in_handler();
        lab.comes_to_iret();
        lab.send_nmi();
        let mut lab = lab.carried();
        lab.vcpu.rip = rip;
        assert_eq!(lab.enter().is_some(), opens);
        assert_eq!(lab.steps(), !opens);
    }
}

#[test]
fn interrupts_come_into_a_handler_that_enables_them() {
    let mut lab = in_handler();
    lab.send_nmi();
    lab.send(&edge(0x41));
    assert_eq!(lab.take_interrupt(), Some(0x41));
}

#[test]
fn an_nmi_in_a_handler_does_not_wake_it_from_its_halt() {
    let mut lab = in_handler();
    lab.set_interrupts(true);
    lab.send_nmi();
    assert_eq!(lab.executed(&[0xf4], Exit::Halt), Outcome::Idle);
    assert!(!lab.context().prepare_entry());
    lab.send(&edge(0x41));
    assert!(lab.context().prepare_entry());
}

#[test]
fn an_init_in_a_handler_discards_it() {
    let mut lab = Lab::with_vcpus(2, false);
    lab.wrmsr(0x1b, 0xfee0_0c00).unwrap();
    lab.wrmsr(SPURIOUS, ENABLED).unwrap();
    let mut second = Cpu::new(1, false, START, 0x1234, Arc::default());
    let mut vcpu = FakeVcpu::default();
    let mut enter = |lab: &mut Lab, vcpu: &mut FakeVcpu| {
        lab.machine.context(vcpu, &mut second, &mut lab.host).prepare_entry();
        vcpu.injected.take()
    };
    // INIT, start-up, NMI; the same again while the handler runs.
    for _ in 0..2 {
        for command in [5 << 8 | 1 << 14, 6 << 8 | 3] {
            lab.wrmsr(0x830, 1 << 32 | command).unwrap();
            assert_eq!(enter(&mut lab, &mut vcpu), None);
        }
        lab.wrmsr(0x830, 1 << 32 | 4 << 8).unwrap();
        assert_eq!(enter(&mut lab, &mut vcpu), Some(Event::Nmi));
        assert!(vcpu.interrupt_return_watched);
    }
}
