// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of injection: priorities, windows, NMIs, events whose delivery an exit interrupted.
use super::*;
use crate::devices::{DeliveryMode, Destination, InterruptMessage};

pub fn edge(vector: u8) -> InterruptMessage {
    InterruptMessage { destination: Destination::Physical(0), mode: DeliveryMode::Fixed, vector, is_level: false }
}

pub fn nmi() -> InterruptMessage {
    InterruptMessage { mode: DeliveryMode::Nmi, ..edge(0) }
}

fn with(vectors: &[u8]) -> Lab {
    let mut lab = Lab::new();
    vectors.iter().for_each(|&vector| lab.send(&edge(vector)));
    lab
}

#[test]
fn a_guest_interrupts_itself() {
    let mut lab = Lab::new();
    lab.wrmsr(SELF_IPI, 0x41).unwrap();
    assert_eq!(lab.take_interrupt(), Some(0x41));
    // By the command register with its shorthand for oneself, with its own identifier, and for all.
    for command in [1 << 18 | 0x42, 0x42, 2 << 18 | 0x42] {
        lab.wrmsr(EOI, 0).unwrap();
        lab.wrmsr(0x830, command).unwrap();
        assert_eq!(lab.take_interrupt(), Some(0x42), "{command:#x}");
    }
}

#[test]
fn an_interrupt_for_another_cpu_is_not_taken() {
    let mut lab = Lab::new();
    lab.wrmsr(0x830, 7 << 32 | 0x42).unwrap();
    assert_eq!(lab.take_interrupt(), None);
}

#[test]
fn interrupts_come_by_priority_and_none_is_lost() {
    let mut lab = with(&[0x31, 0x52, 0x45]);
    assert_eq!(lab.take_interrupt(), Some(0x52));
    assert_eq!(lab.take_interrupt(), None, "the others wait for its end");
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), Some(0x45));
    lab.send(&edge(0x61));
    assert_eq!(lab.take_interrupt(), Some(0x61), "a higher one interrupts its handler");
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), None);
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), Some(0x31));
}

#[test]
fn one_event_at_a_time_the_nmi_first() {
    let mut lab = with(&[0x31]);
    lab.send(&nmi());
    lab.set_interrupts(true);
    assert_eq!(lab.enter(), Some(Event::Nmi));
    assert!(lab.vcpu.window_requested, "the interrupt is not lost");
    assert_eq!(lab.take_interrupt(), Some(0x31));
}

#[test]
fn an_exception_of_a_handler_goes_before_interrupts() {
    let mut lab = with(&[0x31]);
    lab.set_interrupts(true);
    lab.at(&[0x0f, 0x32]);
    lab.vcpu.gprs[Gpr::Rcx as usize] = 0x1234;
    lab.handle(Exit::MsrRead);
    assert_eq!(lab.enter(), Some(Event::Exception(Exception::GeneralProtection(0))));
    assert!(lab.vcpu.window_requested);
    assert_eq!(lab.take_interrupt(), Some(0x31));
}

#[test]
fn an_interrupt_whose_delivery_was_interrupted_is_requested_again_and_acknowledged_once() {
    let mut lab = with(&[0x31]);
    assert_eq!(lab.take_interrupt(), Some(0x31));
    // The exit puts the event back; meanwhile a higher interrupt and an NMI arrive.
    lab.set_interrupts(true);
    lab.vcpu.injected = Some(Event::Interrupt(0x31));
    lab.send(&edge(0x61));
    lab.send(&nmi());
    assert_eq!(lab.handle(Exit::HostInterrupt), Outcome::HostInterrupt);
    assert_eq!(lab.enter(), Some(Event::Nmi), "the interrupt is requested again");
    assert!(lab.vcpu.window_requested);
    for vector in [0x61, 0x31] {
        assert_eq!(lab.take_interrupt(), Some(vector));
        lab.wrmsr(EOI, 0).unwrap();
    }
    assert_eq!(lab.rdmsr(0x811), Ok(0), "both have ended");
    assert_eq!(lab.take_interrupt(), None);
}

#[test]
fn an_interrupt_that_was_not_taken_makes_room_for_a_higher_one() {
    for (second, taken) in [(0x61, [0x61, 0x31]), (0x22, [0x31, 0x22])] {
        let mut lab = with(&[0x31]);
        assert_eq!(lab.take_interrupt(), Some(0x31));
        lab.set_interrupts(true);
        lab.vcpu.injected = Some(Event::Interrupt(0x31));
        lab.send(&edge(second));
        assert_eq!(lab.enter(), Some(Event::Interrupt(taken[0])));
        assert!(!lab.vcpu.window_requested, "the other one is below what is in service");
        lab.wrmsr(EOI, 0).unwrap();
        assert_eq!(lab.take_interrupt(), Some(taken[1]));
    }
}

#[test]
fn an_entry_that_is_prepared_twice_is_prepared_once() {
    let mut lab = with(&[0x31, 0x52]);
    lab.set_interrupts(true);
    assert!(lab.context().prepare_entry());
    let state = lab.cpu.lapic.state();
    assert!(lab.context().prepare_entry());
    assert_eq!((lab.vcpu.injected, lab.cpu.lapic.state()), (Some(Event::Interrupt(0x52)), state));
}

#[test]
fn the_task_priority_holds_back_what_is_not_above_it() {
    let mut lab = with(&[0x45]);
    lab.vcpu.task_priority = 4;
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!(lab.rdmsr(TASK_PRIORITY), Ok(0x40), "CR8 is the register's upper half");
    lab.vcpu.task_priority = 3;
    assert_eq!(lab.take_interrupt(), Some(0x45));
}

/// `mov cr8, rax`.
fn write_cr8(lab: &mut Lab, value: u64) -> Result<(), Exception> {
    lab.vcpu.gprs[Gpr::Rax as usize] = value;
    lab.at(&[0x44, 0x0f, 0x22, 0xc0]);
    assert_eq!(lab.handle(Exit::TaskPriorityWrite { source: None }), Outcome::Resume);
    lab.result(4)
}

#[test]
fn cr8_is_watched_while_an_interrupt_waits_for_it_alone() {
    let mut lab = with(&[0x45]);
    lab.vcpu.task_priority = 6;
    assert_eq!(lab.take_interrupt(), None);
    assert!(lab.vcpu.task_priority_watched && !lab.vcpu.window_requested);
    assert_eq!(write_cr8(&mut lab, 4), Ok(()));
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!(write_cr8(&mut lab, 0x10), Err(Exception::GeneralProtection(0)));
    assert_eq!(write_cr8(&mut lab, 3), Ok(()));
    assert_eq!(lab.take_interrupt(), Some(0x45));
    assert!(!lab.vcpu.task_priority_watched);
    lab.send(&edge(0x42));
    lab.vcpu.task_priority = 6;
    assert_eq!(lab.take_interrupt(), None);
    assert!(!lab.vcpu.task_priority_watched, "it waits for the end of another, which is an exit");
}

#[test]
fn cr8_is_written_by_amds_other_encoding_too() {
    let mut lab = Lab::new();
    lab.vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(0xc9b);
    lab.vcpu.gprs[Gpr::Rcx as usize] = 0x1_0000_0007;
    lab.executed(&[0xf0, 0x0f, 0x22, 0xc1], Exit::TaskPriorityWrite { source: None }); // lock mov cr0, ecx
    assert_eq!(lab.vcpu.task_priority, 7);
    assert_eq!(lab.raised(&[0x0f, 0x22, 0xc1], Exit::TaskPriorityWrite { source: None }), Exception::InvalidOpcode);
}

#[test]
fn a_reported_register_is_written_to_cr8_without_decoding() {
    let mut lab = Lab::new();
    lab.vcpu.gprs[Gpr::Rcx as usize] = 9;
    let exit = Exit::TaskPriorityWrite { source: Some(Gpr::Rcx) };
    let at = lab.vcpu.rip;
    lab.vcpu.next_rip = Some(at + 4);
    assert_eq!((lab.handle(exit), lab.vcpu.task_priority, lab.vcpu.rip), (Outcome::Resume, 9, at + 4));
    lab.vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::CODE_32;
    lab.vcpu.gprs[Gpr::Rcx as usize] = 0x1_0000_0003;
    assert_eq!((lab.handle(exit), lab.vcpu.task_priority), (Outcome::Resume, 3), "a register has 32 bits there");
    lab.vcpu.gprs[Gpr::Rcx as usize] = 16;
    lab.handle(exit);
    assert_eq!(lab.vcpu.injected, Some(Event::Exception(Exception::GeneralProtection(0))));
}

#[test]
fn an_exit_on_another_register_does_not_undo_cr8() {
    let mut lab = Lab::new();
    lab.vcpu.task_priority = 5;
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.vcpu.task_priority, 5);
    lab.vcpu.task_priority = 6;
    lab.load(Gpa(0xfec0_0000));
    assert_eq!(lab.vcpu.task_priority, 6);
    assert_eq!(lab.rdmsr(0x80a), Ok(0x60), "the CPU's priority has followed");
}

#[test]
fn writing_the_task_priority_register_sets_cr8() {
    let mut lab = Lab::new();
    lab.wrmsr(TASK_PRIORITY, 0x7b).unwrap();
    assert_eq!(lab.vcpu.task_priority, 7);
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!(lab.rdmsr(TASK_PRIORITY), Ok(0x7b), "the lower half stays as long as CR8 does");
    let mut lab = Lab::with_xapic();
    lab.store(Gpa(0xfee0_0080), 0x20);
    assert_eq!(lab.vcpu.task_priority, 2);
}

#[test]
fn a_disabled_local_apic_delivers_nothing() {
    let mut lab = Lab::new();
    lab.wrmsr(0x1b, 0xfee0_0000).unwrap();
    lab.send(&edge(0x31));
    lab.send(&nmi());
    assert_eq!(lab.take_interrupt(), None);
}
