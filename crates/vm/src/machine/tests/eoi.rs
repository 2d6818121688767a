// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paravirtual end of interrupt: a flag in memory that the guest clears instead of writing the register.
use super::interrupts::edge;
use super::*;
use crate::devices::InterruptMessage;

const PV_EOI: u32 = 0x4b56_4d04;
const FLAG: Gpa = Gpa(0x5000);

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.wrmsr(PV_EOI, FLAG.0 | 1).unwrap();
    lab
}

fn flag(lab: &Lab) -> u8 {
    lab.machine.memory().bytes(FLAG, 1)[0]
}

/// The guest's end of interrupt. Returns whether it cost an exit.
fn end(lab: &mut Lab) -> bool {
    if flag(lab) & 1 != 0 {
        lab.machine.memory().write(FLAG, &[0]).unwrap();
        return false;
    }
    lab.wrmsr(EOI, 0).unwrap();
    true
}

/// ISR bits of vectors 0x20–0x3f.
fn in_service(lab: &mut Lab) -> u64 {
    lab.rdmsr(0x811).unwrap()
}

#[test]
fn the_offer_is_made_with_the_interrupt_and_used_without_an_exit() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    assert_eq!(lab.take_interrupt(), Some(0x31));
    assert_eq!(flag(&lab), 1);
    assert!(!end(&mut lab));
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!(in_service(&mut lab), 0);
    assert_eq!(lab.rdmsr(PV_EOI), Ok(FLAG.0 | 1));
}

#[test]
fn an_interrupt_of_the_same_class_comes_after_a_skipped_end() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    end(&mut lab);
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x30));
    assert_eq!(lab.take_interrupt(), Some(0x30));
    assert_eq!(flag(&lab), 1);
}

#[test]
fn an_offer_not_used_yet_is_withdrawn_for_another_interrupt_and_the_end_counts_once() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x30));
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!(flag(&lab), 0, "someone waits for the end");
    assert!(end(&mut lab));
    assert_eq!(lab.take_interrupt(), Some(0x30));
    assert!(!end(&mut lab));
    assert_eq!(lab.take_interrupt(), None);
}

#[test]
fn nested_interrupts_end_one_by_one() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x52));
    assert_eq!(lab.take_interrupt(), Some(0x52));
    assert_eq!(flag(&lab), 0, "two are in service");
    assert!(end(&mut lab));
    assert_eq!(lab.take_interrupt(), None);
    assert_eq!((in_service(&mut lab), flag(&lab)), (1 << 17, 0), "reading a register withdraws the offer");
    assert_eq!((lab.enter(), flag(&lab)), (None, 1));
    assert!(!end(&mut lab));
    assert_eq!(in_service(&mut lab), 0);
}

#[test]
fn a_guest_that_writes_the_register_in_spite_of_the_offer_ends_one_interrupt() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!((flag(&lab), in_service(&mut lab)), (0, 0));
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x30));
    assert_eq!(lab.take_interrupt(), Some(0x30));
    assert_eq!(in_service(&mut lab), 1 << 16, "the old offer does not end the new interrupt");
}

#[test]
fn a_level_triggered_interrupt_is_never_offered() {
    let mut lab = lab();
    let message = InterruptMessage { is_level: true, ..edge(0x31) };
    lab.machine.send(&mut lab.cpu, &mut lab.host, &message);
    assert_eq!((lab.take_interrupt(), flag(&lab)), (Some(0x31), 0));
}

#[test]
fn an_offer_outlives_a_delivery_that_an_exit_interrupted() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    lab.vcpu.injected = Some(Event::Interrupt(0x31));
    assert_eq!(lab.take_interrupt(), Some(0x31));
    assert_eq!(flag(&lab), 1);
    end(&mut lab);
    assert_eq!((lab.take_interrupt(), in_service(&mut lab)), (None, 0));
}

#[test]
fn a_flag_outside_memory_is_no_offer() {
    let mut lab = Lab::new();
    for area in [0xffff_ffff_ffff_fffd, MEMORY_BYTES as u64 | 1] {
        lab.wrmsr(PV_EOI, area).unwrap();
        lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
        assert_eq!(lab.take_interrupt(), Some(0x31));
        assert_eq!(in_service(&mut lab), 1 << 17);
        lab.wrmsr(EOI, 0).unwrap();
    }
}

#[test]
fn switching_it_off_withdraws_the_offer() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    lab.wrmsr(PV_EOI, 0).unwrap();
    assert_eq!((flag(&lab), in_service(&mut lab)), (0, 1 << 17));
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(in_service(&mut lab), 0);
}

#[test]
fn switching_it_off_counts_an_end_that_was_skipped_before() {
    let mut lab = lab();
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    lab.take_interrupt();
    end(&mut lab);
    lab.wrmsr(PV_EOI, 0).unwrap();
    assert_eq!(in_service(&mut lab), 0);
}

#[test]
fn a_refused_area_leaves_the_old_one() {
    let mut lab = lab();
    assert_eq!(lab.wrmsr(PV_EOI, FLAG.0 | 2), Err(Exception::GeneralProtection(0)));
    lab.machine.send(&mut lab.cpu, &mut lab.host, &edge(0x31));
    assert_eq!((lab.take_interrupt(), flag(&lab)), (Some(0x31), 1));
}
