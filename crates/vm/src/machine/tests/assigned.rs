// SPDX-License-Identifier: MIT OR Apache-2.0
//! A physical function of the guest: its line, from the host's interrupt to the guest's EOI.

use super::*;
use crate::devices::pci::Slot;
use crate::devices::pci::assigned::{Assigned, Description, Raised};
use crate::devices::{DeliveryMode, Destination};
use crate::testing::{FakeAddressSpace, FakePhysical};

const COMMAND: Gpa = Gpa(0xe000_8004);
const PIN: u8 = 16;
const LEVEL: u32 = 1 << 15;

type Shared = Arc<spin::Mutex<crate::devices::pci::Endpoint<Assigned<FakePhysical>>>>;

/// A machine with a function in device 1, whose line is vector 0x51, level-triggered.
fn lab() -> (Lab, Shared) {
    let mut lab = Lab::new();
    let mut physical = FakePhysical::new(0, &FakeAddressSpace::new(lab.machine.memory().size_bytes()));
    let name = "01:00.0".parse().expect("a place");
    let description = Description::probe(name, &mut physical, Some(PIN)).expect("it is good");
    let function = Assigned::in_slot(Slot(8), description, physical).expect("there can be one");
    let function = lab.machine.bus_mut().attach_function(function).expect("the slot is free");
    lab.store(COMMAND, 6);
    lab.redirect(PIN.into(), 0x51 | LEVEL);
    (lab, function)
}

/// Returns each vCPU that was to be notified, and whether it had been.
fn raise(lab: &mut Lab, function: &Shared, raised: Raised) -> Vec<(usize, bool)> {
    let mut notified = Vec::new();
    let mut notify = |vcpu, was_notified| notified.push((vcpu, was_notified));
    lab.machine.with_function(function, &mut notify, |function, outputs| function.raise(raised, outputs));
    notified
}

#[test]
fn a_line_interrupts_until_its_eoi_and_again_when_the_host_raises_it_again() {
    let (mut lab, function) = lab();
    for count in 1..4 {
        raise(&mut lab, &function, Raised::Line);
        raise(&mut lab, &function, Raised::Line);
        assert_eq!(lab.take_interrupt(), Some(0x51));
        assert_eq!(lab.take_interrupt(), None, "once");
        assert_eq!(lab.load(COMMAND) >> 19 & 1, 1, "the interrupt's status");
        lab.wrmsr(EOI, 0).unwrap();
        assert_eq!(function.lock().physical().unmasked, count);
        assert_eq!(lab.take_interrupt(), None, "the line is not asserted any more");
        assert_eq!(lab.load(COMMAND) >> 19 & 1, 0);
    }
}

#[test]
fn the_end_of_another_interrupt_does_not_unmask_the_line() {
    let (mut lab, function) = lab();
    lab.redirect(17, 0x61 | LEVEL);
    raise(&mut lab, &function, Raised::Line);
    assert_eq!(lab.take_interrupt(), Some(0x51));
    lab.send(&InterruptMessage {
        destination: Destination::Physical(0),
        mode: DeliveryMode::Fixed,
        vector: 0x61,
        is_level: true,
    });
    assert_eq!(lab.take_interrupt(), Some(0x61));
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(function.lock().physical().unmasked, 0);
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(function.lock().physical().unmasked, 1);
}

#[test]
fn a_vcpu_is_to_be_notified_of_the_first_interrupt_since_it_checked() {
    let (mut lab, function) = lab();
    assert_eq!(raise(&mut lab, &function, Raised::Line), [(0, false)]);
    assert_eq!(raise(&mut lab, &function, Raised::Line), [], "the line is asserted already");
    lab.redirect(PIN.into(), 0x51 | LEVEL);
    assert_eq!(lab.take_interrupt(), Some(0x51));
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(raise(&mut lab, &function, Raised::Line), [(0, false)], "it has checked since");
}
