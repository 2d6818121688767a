// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units that do not execute commands.

use super::setup::*;
use crate::problem::Problem;

#[test]
fn a_unit_that_never_answers_is_given_up() {
    let machine = machine();
    machine.unit(|unit| unit.is_unresponsive = true);
    assert!(matches!(take_over(&machine, &[]).map(|_| ()), Err(Problem::NoAnswer { .. })));
}

#[test]
fn a_queue_that_stands_still_ends_every_request() {
    let machine = machine();
    let (source, memory) = (function(3, 1), &mut machine.clone());
    let mut unit = started(&machine);
    let domain = one_page(&machine, 1);
    machine.unit(|unit| unit.hangs = true);
    assert!(matches!(unit.attach(memory, source, &domain), Err(Problem::NoAnswer { .. })));
    machine.access(0x308, 0x5000, false).unwrap_err();
    assert!(matches!(unit.invalidate(memory, domain.id()), Err(Problem::NoAnswer { .. })));
    assert!(matches!(unit.leave(memory), Err(Problem::NoAnswer { .. })));
}

#[test]
fn an_error_of_the_queue_is_reported_and_the_queue_goes_on() {
    let machine = machine();
    let (source, memory) = (function(3, 1), &mut machine.clone());
    let mut unit = started(&machine);
    let domain = one_page(&machine, 1);
    unit.attach(memory, source, &domain).unwrap();
    machine.unit(|unit| unit.errs = true);
    let refused = Problem::Refused { what: "invalidating translations", status: 1 << 4 };
    assert_eq!(unit.invalidate(memory, domain.id()), Err(refused));
    unit.invalidate(memory, domain.id()).unwrap();
    assert_eq!(machine.access(0x308, 0x5000, false), Ok(0x9000));
    unit.block(memory, source).unwrap();
    machine.access(0x308, 0x5000, false).unwrap_err();
}

#[test]
fn a_unit_that_vanishes_ends_every_request() {
    let machine = machine();
    let (source, memory) = (function(3, 1), &mut machine.clone());
    let mut unit = started(&machine);
    let domain = one_page(&machine, 1);
    machine.unit(|unit| unit.is_gone = true);
    assert!(matches!(unit.attach(memory, source, &domain), Err(Problem::Absurd { .. })));
    assert!(matches!(unit.remap_interrupts(memory, true), Err(Problem::Absurd { .. })));
    assert!(matches!(unit.leave(memory), Err(Problem::Absurd { .. })));
}

#[test]
fn a_queue_that_its_former_owner_broke_is_started_again() {
    let machine = machine();
    let mut former = started(&machine);
    machine.unit(|unit| unit.errs = true);
    machine.unit(|unit| unit.hangs = true);
    former.invalidate(&mut machine.clone(), crate::domain::DomainId(1)).unwrap_err();
    machine.unit(|unit| {
        unit.hangs = false;
        unit.faults |= 1 << 4;
        unit.errs = false;
    });
    let _unit = started(&machine);
}

#[test]
fn without_memory_a_function_stays_blocked() {
    let machine = machine();
    let mut unit = started(&machine);
    let domain = one_page(&machine, 1);
    machine.ram(|ram| ram.budget = 0);
    let attached = unit.attach(&mut machine.clone(), function(3, 1), &domain);
    assert_eq!(attached, Err(Problem::OutOfMemory));
    machine.access(0x308, 0x5000, false).unwrap_err();
    assert_eq!(unit.remap_interrupts(&mut machine.clone(), true), Err(Problem::OutOfMemory));
}
