// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions, domains and interrupts of a unit that runs.

use paging::{PageSize, PhysAddr};
use pci::Bdf;
use units::{GIB, KIB, MIB};

use super::super::registers::*;
use super::super::{AmdFormat, Event, MOST_INTERRUPTS, Setup, Unit};
use super::hardware::{ALL_FEATURES, Machine};
use crate::{Access, Domain, DomainId, FaultReason, Interrupt, Problem};

pub const HIGHEST: u16 = 0x3ff;

pub fn function(requester: u16) -> Bdf {
    Bdf::of_requester(0, requester)
}

pub fn setup() -> Setup<'static> {
    Setup { segment: 0, highest: HIGHEST, flags: 0, is_x2apic: true, requesters: &[] }
}

pub fn started(features: u64) -> (Machine, Unit) {
    let machine = Machine::new(features);
    let (mut registers, mut memory) = machine.sides();
    let unit = Unit::take_over(&mut registers, &mut memory, &setup()).unwrap();
    (machine, unit)
}

pub fn domain(machine: &Machine, id: u16) -> Domain<AmdFormat> {
    Domain::new(DomainId(id), &mut machine.clone(), PageSize::Gib1).unwrap()
}

fn access(machine: &Machine, requester: u16, address: u64, is_write: bool) -> Option<u64> {
    machine.0.borrow_mut().access(requester, address, is_write)
}

fn send(machine: &Machine, requester: u16, data: u32) -> Option<(u8, u32)> {
    machine.0.borrow_mut().interrupt(requester, data).ok()
}

#[test]
fn a_function_reaches_its_domain_with_its_rights_and_nothing_else() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let mut domain = domain(&machine, 7);
    domain.map(&mut memory, 0x1000, PhysAddr(0x5000), 4 * KIB, true).unwrap();
    domain.map(&mut memory, 2 * MIB, PhysAddr(8 * MIB), 2 * MIB, false).unwrap();
    domain.map(&mut memory, GIB, PhysAddr(3 * GIB), GIB, true).unwrap();
    assert_eq!(access(&machine, 8, 0x1000, false), None, "it is blocked");
    unit.attach(&mut registers, &mut memory, function(8), &domain).unwrap();
    assert_eq!(access(&machine, 8, 0x1234, true), Some(0x5234));
    assert_eq!(access(&machine, 8, 0x1234, false), Some(0x5234));
    assert_eq!(access(&machine, 8, 2 * MIB + 0x12345, false), Some(8 * MIB + 0x12345));
    assert_eq!(access(&machine, 8, 2 * MIB, true), None, "it may only read");
    assert_eq!(access(&machine, 8, 2 * GIB - 1, true), Some(4 * GIB - 1));
    assert_eq!(access(&machine, 8, 0x2000, false), None);
    assert_eq!(access(&machine, 8, 1 << 48, false), None);
    assert_eq!(access(&machine, 9, 0x1000, false), None, "another function");
    unit.block(&mut registers, &mut memory, function(8)).unwrap();
    assert_eq!(access(&machine, 8, 0x1234, false), None);
    assert_eq!(unit.attached(&memory, function(8)), Ok(None));
}

#[test]
fn what_is_unmapped_is_out_of_reach_once_the_domain_is_invalidated() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let mut domain = domain(&machine, 7);
    unit.attach(&mut registers, &mut memory, function(8), &domain).unwrap();
    assert_eq!(access(&machine, 8, 0x1000, true), None);
    domain.map(&mut memory, 0x1000, PhysAddr(0x5000), 8 * KIB, true).unwrap();
    assert_eq!(access(&machine, 8, 0x1000, true), None, "the model keeps what is absent");
    unit.invalidate_range(&mut registers, &mut memory, DomainId(7), 0x1000, 8 * KIB).unwrap();
    assert_eq!(access(&machine, 8, 0x2000, true), Some(0x6000));
    domain.unmap(&mut memory, 0x1000, 8 * KIB).unwrap();
    assert_eq!(access(&machine, 8, 0x2000, true), Some(0x6000), "the model keeps translations");
    unit.invalidate(&mut registers, &mut memory, DomainId(7)).unwrap();
    assert_eq!(access(&machine, 8, 0x2000, true), None);
}

#[test]
fn interrupts_go_where_they_are_sent_in_every_format() {
    for (features, destination) in [(0, 0xfe), (1 << 7, 0xfe), (ALL_FEATURES, 0x1234_5678)] {
        let (machine, mut unit) = started(features);
        let (mut registers, mut memory) = machine.sides();
        unit.open_interrupts(&mut registers, &mut memory, function(8), 3).unwrap();
        assert_eq!(send(&machine, 8, 1), None);
        let interrupt = Interrupt { vector: 0x41, destination, is_level: false };
        unit.set_interrupt(&mut registers, &mut memory, function(8), 1, Some(interrupt)).unwrap();
        let message = unit.message(&memory, function(8), 1).unwrap();
        assert_eq!(message.address, 0xfee0_0000);
        assert_eq!(send(&machine, 8, message.data), Some((0x41, destination)), "{features:#x}");
        for other in [0, 2, 3, 4, 500, 2047] {
            assert_eq!(send(&machine, 8, other), None);
        }
        assert_eq!(send(&machine, 9, 1), None);
        unit.set_interrupt(&mut registers, &mut memory, function(8), 1, None).unwrap();
        assert_eq!(send(&machine, 8, 1), None);
        unit.set_interrupt(&mut registers, &mut memory, function(8), 0, Some(interrupt)).unwrap();
        unit.block(&mut registers, &mut memory, function(8)).unwrap();
        assert_eq!(send(&machine, 8, 0), None);
        assert!(unit.message(&memory, function(8), 0).is_err());
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (machine, mut unit) = started(1 << 7);
    let (mut registers, mut memory) = machine.sides();
    let source = function(8);
    let absent = Problem::NoInterrupt { source };
    for count in [0, MOST_INTERRUPTS + 1, u16::MAX] {
        assert_eq!(unit.open_interrupts(&mut registers, &mut memory, source, count), Err(absent));
    }
    let far = Interrupt { vector: 0x41, destination: 0xff, is_level: false };
    assert_eq!(unit.set_interrupt(&mut registers, &mut memory, source, 0, Some(far)), Err(absent));
    unit.open_interrupts(&mut registers, &mut memory, source, MOST_INTERRUPTS).unwrap();
    let refused = unit.set_interrupt(&mut registers, &mut memory, source, 0, Some(far));
    assert_eq!(refused, Err(Problem::FarDestination { destination: 0xff }));
    assert_eq!(unit.message(&memory, source, MOST_INTERRUPTS), Err(absent));
    let elsewhere = Bdf::of_requester(1, 8);
    let beyond = function(HIGHEST + 1);
    for source in [elsewhere, beyond] {
        let refused = unit.open_interrupts(&mut registers, &mut memory, source, 1);
        assert_eq!(refused, Err(Problem::NotHere { source }));
    }
}

#[test]
fn faults_name_the_function_the_address_and_the_reason() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let mut domain = domain(&machine, 7);
    domain.map(&mut memory, 0x1000, PhysAddr(0x5000), 4 * KIB, false).unwrap();
    unit.attach(&mut registers, &mut memory, function(8), &domain).unwrap();
    assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(None));
    for (address, reason) in [(0x1008, FaultReason::NotAllowed), (0x9000, FaultReason::NotMapped)] {
        access(&machine, 8, address, true);
        let Ok(Some(Event::Fault(fault))) = unit.next_fault(&mut registers, &mut memory) else { panic!("no fault") };
        assert_eq!((fault.source, fault.address, fault.reason), (function(8), address, reason));
        let logged_access = if reason == FaultReason::NotAllowed { Access::Write } else { Access::Read };
        assert_eq!(fault.access, logged_access);
    }
    assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(None));
}

#[test]
fn a_log_that_overflows_is_restarted() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    for lap in 0..3 {
        assert!((0..600).all(|address| access(&machine, 8, address, false).is_none()));
        for address in 0..511 {
            let Ok(Some(Event::Fault(fault))) = unit.next_fault(&mut registers, &mut memory) else {
                panic!("fault {address} of lap {lap}")
            };
            assert_eq!(fault.address, address);
        }
        assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(Some(Event::Lost)));
        assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(None));
    }
}

#[test]
fn an_event_without_words_is_lost() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    machine.set(EVENT_TAIL, 16);
    assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(Some(Event::Lost)));
    assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(None));
}

#[test]
fn a_unit_that_has_vanished_is_noticed() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    for pointer in [u64::MAX, 1, 8208] {
        machine.set(EVENT_TAIL, pointer);
        let refused = unit.next_fault(&mut registers, &mut memory);
        assert!(matches!(refused, Err(Problem::Absurd { register: "Event Log Tail", .. })), "{refused:?}");
    }
    machine.set(EVENT_TAIL, 0);
    machine.set(STATUS, u64::MAX);
    assert!(matches!(unit.next_fault(&mut registers, &mut memory), Err(Problem::Absurd { .. })));
}

#[test]
fn a_unit_that_does_not_answer_ends_every_wait_and_may_come_back() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let domain = domain(&machine, 7);
    machine.0.borrow_mut().is_dead = true;
    let unanswered = Err(Problem::NoAnswer { what: "its commands" });
    assert_eq!(unit.attach(&mut registers, &mut memory, function(8), &domain), unanswered);
    assert_eq!(unit.open_interrupts(&mut registers, &mut memory, function(8), 4), unanswered);
    assert_eq!(unit.block(&mut registers, &mut memory, function(8)), unanswered);
    assert_eq!(unit.invalidate(&mut registers, &mut memory, DomainId(7)), unanswered);
    machine.0.borrow_mut().is_dead = false;
    unit.attach(&mut registers, &mut memory, function(8), &domain).unwrap();
}

/// Returns whether a refused access and a refused interrupt are logged.
fn logged(machine: &Machine, unit: &mut Unit, requester: u16) -> [bool; 2] {
    let (mut registers, mut memory) = machine.sides();
    let mut is_logged = || unit.next_fault(&mut registers, &mut memory).unwrap().is_some();
    assert_eq!(access(machine, requester, 0x1000, true), None);
    let access = is_logged();
    machine.0.borrow_mut().send(requester, 1);
    [access, is_logged()]
}

#[test]
fn nothing_of_a_stopped_function_is_logged_until_it_is_attached() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let domain = domain(&machine, 7);
    unit.attach(&mut registers, &mut memory, function(8), &domain).unwrap();
    unit.open_interrupts(&mut registers, &mut memory, function(8), 1).unwrap();
    assert_eq!(logged(&machine, &mut unit, 8), [true, true]);
    unit.stop(&mut registers, &mut memory, function(8)).unwrap();
    assert_eq!(logged(&machine, &mut unit, 8), [false, false]);
    assert_eq!(logged(&machine, &mut unit, 9), [true, true], "another function");
    unit.block(&mut registers, &mut memory, function(8)).unwrap();
    assert_eq!(logged(&machine, &mut unit, 8), [false, false], "its guest has ended");
    unit.attach(&mut registers, &mut memory, function(8), &domain).unwrap();
    assert_eq!(logged(&machine, &mut unit, 8), [true, true]);
}

#[test]
fn a_ring_that_is_full_takes_no_more() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    machine.0.borrow_mut().is_dead = true;
    machine.set(COMMAND_HEAD, machine.get(COMMAND_TAIL));
    unit.commands.fill_for_test(&mut memory);
    let before = machine.get(COMMAND_TAIL);
    for _ in 0..3 {
        let refused = unit.invalidate(&mut registers, &mut memory, DomainId(1));
        assert!(matches!(refused, Err(Problem::NoAnswer { .. })));
    }
    assert_ne!(machine.get(COMMAND_TAIL), before, "one command more had room: the wait");
    let after = machine.get(COMMAND_TAIL);
    assert!(unit.invalidate(&mut registers, &mut memory, DomainId(1)).is_err());
    assert_eq!(machine.get(COMMAND_TAIL), after);
    machine.0.borrow_mut().is_dead = false;
    machine.set(COMMAND_HEAD, machine.get(COMMAND_TAIL));
    unit.invalidate(&mut registers, &mut memory, DomainId(1)).unwrap();
}
