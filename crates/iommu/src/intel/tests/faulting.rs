// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults as they are reported.

use std::string::ToString;

use super::setup::*;
use crate::fault::{Access, Fault, FaultReason};

#[test]
fn faults_are_reported_in_their_order_with_what_was_wanted() {
    let machine = machine();
    let mut unit = started(&machine);
    let mut domain = domain(&machine, &unit, 1);
    let source = function(3, 1);
    unit.attach(&mut machine.clone(), source, &domain).unwrap();
    map(&machine, &mut unit, &mut domain, (0x5000, 0x9000), 0x1000, false).unwrap();
    assert_eq!(unit.next_fault(), None);
    machine.access(0x308, 0x7123, false).unwrap_err();
    machine.access(0x308, 0x5123, true).unwrap_err();
    machine.access(0x408, 0x5123, true).unwrap_err();
    let fault = |source, address, access, reason| Some(Fault { source, address, access, reason });
    assert_eq!(unit.next_fault(), fault(source, 0x7000, Access::Read, FaultReason::NotMapped));
    assert_eq!(unit.next_fault(), fault(source, 0x5000, Access::Write, FaultReason::NotAllowed));
    assert_eq!(unit.next_fault(), fault(function(4, 1), 0x5000, Access::Write, FaultReason::NotMapped));
    assert_eq!(unit.next_fault(), None);
}

#[test]
fn an_interrupt_that_was_not_opened_is_a_fault_with_its_entry() {
    let machine = machine();
    let mut unit = started(&machine);
    unit.remap_interrupts(&mut machine.clone(), true).unwrap();
    machine.interrupt(0x308, 0xfee0_0010 | 5 << 5, 0).unwrap_err();
    let fault = unit.next_fault().unwrap();
    assert_eq!((fault.address, fault.access, fault.reason), (5, Access::Interrupt, FaultReason::NotOpened));
    assert_eq!(fault.to_string(), "0000:03:01.0 wanted to interrupt by entry 0x5: it was not opened for the function");
}

#[test]
fn a_wrong_table_is_a_defect_of_the_host() {
    let machine = machine();
    let mut unit = started(&machine);
    let domain = one_page(&machine, 1);
    unit.attach(&mut machine.clone(), function(3, 1), &domain).unwrap();
    machine.ram(|ram| ram.store(domain.root().0, 0x803));
    machine.access(0x308, 0x5000, false).unwrap_err();
    assert_eq!(unit.next_fault().unwrap().reason, FaultReason::BadTable(0xc));
}

#[test]
fn a_storm_costs_a_bounded_time_and_the_next_faults_are_recorded_again() {
    let machine = machine();
    let mut unit = started(&machine);
    for round in 1..4 {
        for address in 0..100 {
            machine.access(0x308, address << 12, true).unwrap_err();
        }
        let reported = std::iter::from_fn(|| unit.next_fault()).take(10).count();
        assert_eq!(reported, 4, "round {round}: as many as there are records");
    }
}

#[test]
fn a_unit_that_is_gone_reports_no_fault() {
    let machine = machine();
    let mut unit = started(&machine);
    machine.unit(|unit| unit.is_gone = true);
    assert_eq!(unit.next_fault(), None);
}
