// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions that the guest raises by itself and leaves for: it gets them, and the host gets its CPU in between.
use super::interrupts::{edge, nmi};
use super::*;

const DEBUG: Exception = Exception::Debug;
const ALIGNMENT_CHECK: Exception = Exception::Fault { vector: 17, code: Some(0) };

#[test]
fn an_exception_of_the_guests_is_delivered_to_it_where_it_was_raised() {
    for exception in [DEBUG, ALIGNMENT_CHECK] {
        let mut lab = Lab::new();
        lab.at(&[0x90]);
        assert_eq!(lab.handle(Exit::Exception(exception)), Outcome::Resume);
        assert_eq!(lab.vcpu.rip, RIP);
        assert_eq!(lab.enter(), Some(Event::Exception(exception)));
        assert_eq!(lab.enter(), None, "once");
    }
}

#[test]
fn the_frame_of_a_fault_has_the_resume_flag_and_that_of_a_debug_exception_what_it_had() {
    for (exception, before, after) in [(DEBUG, false, false), (DEBUG, true, true), (ALIGNMENT_CHECK, false, true)] {
        let mut lab = Lab::new();
        lab.vcpu.rflags = if before { Rflags::RESUME.bits() } else { 0 };
        lab.handle(Exit::Exception(exception));
        assert_eq!(lab.vcpu.rflags & Rflags::RESUME.bits() != 0, after, "{exception:?}");
    }
    let mut lab = Lab::new();
    lab.vcpu.gprs[Gpr::Rcx as usize] = 0x1234;
    lab.raised(&[0x0f, 0x32], Exit::MsrRead);
    assert_ne!(lab.vcpu.rflags & Rflags::RESUME.bits(), 0, "a fault of an instruction that is carried out here");
}

#[test]
fn a_single_step_that_is_the_cpus_own_is_not_followed_by_another() {
    let mut lab = Lab::new();
    lab.vcpu.rflags = Rflags::TRAP.bits();
    lab.handle(Exit::Exception(DEBUG));
    assert_eq!(lab.enter(), Some(Event::Exception(DEBUG)));
}

#[test]
fn an_exception_whose_delivery_raised_a_debug_exception_gives_way_to_it() {
    let mut lab = Lab::new();
    lab.vcpu.injected = Some(Event::Exception(Exception::GeneralProtection(0)));
    lab.vcpu.was_delivering = true;
    lab.handle(Exit::Exception(DEBUG));
    assert_eq!(lab.enter(), Some(Event::Exception(DEBUG)), "#DB is benign: no double fault");
}

#[test]
fn an_interrupt_whose_delivery_raised_an_exception_is_requested_again() {
    let mut lab = Lab::new();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x41));
    lab.set_interrupts(true);
    lab.machine.prepare_entry(&mut lab.vcpu, &mut lab.cpu, &mut lab.host);
    assert_eq!(lab.vcpu.injected, Some(Event::Interrupt(0x41)));
    lab.vcpu.was_delivering = true;
    lab.handle(Exit::Exception(ALIGNMENT_CHECK));
    assert_eq!(lab.enter(), Some(Event::Exception(ALIGNMENT_CHECK)));
    assert_eq!(lab.take_interrupt(), Some(0x41));
}

#[test]
fn an_nmi_whose_delivery_raised_an_exception_waits_behind_it() {
    let mut lab = Lab::new();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &nmi());
    lab.machine.prepare_entry(&mut lab.vcpu, &mut lab.cpu, &mut lab.host);
    lab.vcpu.was_delivering = true;
    lab.handle(Exit::Exception(DEBUG));
    assert!(!lab.vcpu.interrupt_return_watched, "its handler does not run");
    assert_eq!(lab.enter(), Some(Event::Exception(DEBUG)));
    assert_eq!(lab.enter(), Some(Event::Nmi));
}

/// CVE-2015-8104 and CVE-2015-5307: each delivery raises the exception again.
#[test]
fn an_exception_that_raises_itself_without_end_is_an_exit_each_time() {
    for exception in [DEBUG, ALIGNMENT_CHECK] {
        let mut lab = Lab::new();
        for _ in 0..1000 {
            lab.vcpu.was_delivering = true;
            assert_eq!(lab.handle(Exit::Exception(exception)), Outcome::Resume);
            assert_eq!(lab.enter(), Some(Event::Exception(exception)));
        }
    }
}
