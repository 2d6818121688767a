// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of the hardware on their way to the guest.

use super::*;
use crate::devices::ioapic::Ioapic;

const ENABLED: u32 = 1 << 31;

/// With MSI-X enabled: vector n of the function is vector 0x30 + n, not masked.
fn with_msix() -> Lab {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    for vector in 0..u64::from(FakePhysical::VECTORS) {
        let entry = HIGH + FakePhysical::TABLE + 16 * vector;
        lab.write(entry, AccessSize::Qword, 0xfee0_0000);
        lab.write(entry + 8, AccessSize::Qword, 0x30 + vector);
    }
    lab.set_config(0, MSIX, ENABLED);
    lab
}

fn set_mask(lab: &mut Lab, vector: u64, is_masked: bool) {
    lab.write(HIGH + FakePhysical::TABLE + 16 * vector + 12, DWORD, is_masked.into());
}

fn raise(lab: &mut Lab, raised: Raised) {
    lab.with(0, |function, outputs| function.raise(raised, outputs));
}

#[test]
fn each_interrupt_is_one_message() {
    let mut lab = with_msix();
    assert_eq!(lab.physical(0, |p| (p.interrupts, p.opened.len())), (Interrupts::MsiX, 40));
    (0..3).for_each(|_| raise(&mut lab, Raised::Vector(7)));
    raise(&mut lab, Raised::Vector(39));
    assert_eq!(lab.sent(), [0x37, 0x37, 0x37, 0x30 + 39]);
    raise(&mut lab, Raised::Vector(40));
    raise(&mut lab, Raised::Vector(u16::MAX));
    raise(&mut lab, Raised::Line);
    assert_eq!(lab.sent(), [0; 0], "it has no such interrupts");
}

#[test]
fn a_masked_vector_is_pending_and_sent_once() {
    let mut lab = with_msix();
    set_mask(&mut lab, 3, true);
    (0..3).for_each(|_| raise(&mut lab, Raised::Vector(3)));
    assert_eq!((lab.sent(), lab.read(HIGH + FakePhysical::PENDING, DWORD)), (Vec::new(), 1 << 3));
    set_mask(&mut lab, 3, false);
    assert_eq!((lab.sent(), lab.read(HIGH + FakePhysical::PENDING, DWORD)), (Vec::from([0x33]), 0));
    assert_eq!(lab.physical(0, |p| p.opened.len()), 40, "it has stayed open");
}

#[test]
fn vectors_are_opened_when_they_are_first_unmasked() {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    lab.set_config(0, MSIX, ENABLED);
    assert_eq!(lab.physical(0, |p| p.opened.len()), 0);
    for _ in 0..2 {
        set_mask(&mut lab, 5, false);
        set_mask(&mut lab, 5, true);
    }
    assert_eq!(lab.physical(0, |p| p.opened.clone()), [5]);
    assert!(lab.functions[0].lock().is_open(5) && !lab.functions[0].lock().is_open(4));
    lab.set_config(0, MSIX, 0);
    assert_eq!(lab.physical(0, |p| (p.interrupts, p.opened.len())), (Interrupts::Line, 0));
}

#[test]
fn msi_x_that_is_disabled_while_it_is_pending_sends_nothing() {
    let mut lab = with_msix();
    set_mask(&mut lab, 3, true);
    raise(&mut lab, Raised::Vector(3));
    lab.set_config(0, MSIX, 0);
    set_mask(&mut lab, 3, false);
    raise(&mut lab, Raised::Vector(4));
    assert_eq!(lab.sent(), [0; 0]);
    lab.set_config(0, MSIX, ENABLED);
    assert_eq!(lab.sent(), [0x33], "what was pending");
}

#[test]
fn msi_opens_what_the_guest_allows() {
    let mut lab = Lab::new(1);
    lab.set_config(0, MSI + 4, 0xfee0_0000);
    lab.set_config(0, MSI + 12, 0x40);
    for (allowed, vectors) in [(0, 1), (1, 2), (2, 4), (7, 4)] {
        lab.set_config(0, MSI, 1 << 16 | allowed << 20);
        assert_eq!(lab.physical(0, |p| p.interrupts), Interrupts::Msi { vectors });
    }
    raise(&mut lab, Raised::Vector(2));
    assert_eq!(lab.sent(), [0x42]);
}

/// The guest's I/O APIC with the line as vector 0x50, level-triggered.
fn with_line() -> Lab {
    let mut lab = Lab::new(1);
    enable_line(&mut lab);
    lab
}

fn enable_line(lab: &mut Lab) {
    let entry = 0x10 + 2 * u32::from(PIN);
    let mut ioapic = lab.bus.ioapic().lock();
    for (index, value) in [(entry + 1, 0), (entry, 0x8050)] {
        Ioapic::write(&mut ioapic, 0, index, &mut |_| ());
        Ioapic::write(&mut ioapic, 0x10, value, &mut |_| ());
    }
    drop(ioapic);
    lab.set_config(0, 0x04, 0b110);
}

/// As a machine does when a local APIC ends an interrupt.
fn end(lab: &mut Lab, vector: u8) {
    for device in lab.bus.lines_ended(vector) {
        device.lock().end_line(&mut lab.world.outputs);
    }
    lab.bus.apply_lines(&mut lab.world.outputs);
    lab.bus.ioapic().lock().end_of_interrupt(vector, &mut |message| assert!(lab.world.outputs.send(message)));
}

#[test]
fn a_line_interrupts_until_the_guest_has_ended_it() {
    let mut lab = with_line();
    assert_eq!(lab.physical(0, |p| (p.interrupts, p.get(4) & 0x400)), (Interrupts::Line, 0));
    (0..3).for_each(|_| raise(&mut lab, Raised::Line));
    assert_eq!(lab.sent(), [0x50], "once");
    assert_eq!(lab.config(0, 4) >> 16 & 8, 8, "the interrupt's status");
    end(&mut lab, 0x51);
    assert_eq!(lab.physical(0, |p| p.unmasked), 0, "another interrupt");
    end(&mut lab, 0x50);
    assert_eq!((lab.physical(0, |p| p.unmasked), lab.config(0, 4) >> 16 & 8), (1, 0));
    assert_eq!(lab.sent(), [0; 0], "the line is not asserted any more");
    raise(&mut lab, Raised::Line);
    assert_eq!(lab.sent(), [0x50]);
}

#[test]
fn a_function_that_came_has_a_line_until_it_goes() {
    let mut lab = Lab::bare();
    let mut physical = FakePhysical::new(0, &lab.space);
    let description = Description::probe(name(), &mut physical, Some(PIN)).expect("it is good");
    physical.is_sealed = true;
    let function = Assigned::in_slot(Slot(8), description, physical).unwrap();
    lab.functions.push(lab.bus.plug(function).unwrap());
    enable_line(&mut lab);
    raise(&mut lab, Raised::Line);
    assert_eq!(lab.sent(), [0x50]);
    end(&mut lab, 0x50);
    assert_eq!((lab.physical(0, |p| p.unmasked), lab.sent()), (1, Vec::new()));
    raise(&mut lab, Raised::Line);
    assert!(lab.bus.unplug(Slot(8)));
    assert_eq!(lab.bus.ioapic().lock().state().lines, 0, "nothing would lower it");
    end(&mut lab, 0x50);
    assert_eq!((lab.physical(0, |p| p.unmasked), lab.sent()), (1, Vec::from([0x50])));
}

#[test]
fn a_line_that_is_disabled_is_lowered_and_closed() {
    let mut lab = with_line();
    raise(&mut lab, Raised::Line);
    lab.set_config(0, 0x04, 0x406);
    assert_eq!(lab.physical(0, |p| (p.interrupts, p.get(4) & 0x400)), (Interrupts::Off, 0x400));
    assert_eq!((lab.config(0, 4) >> 16 & 8, lab.bus.ioapic().lock().state().lines), (0, 0));
    end(&mut lab, 0x50);
    assert_eq!((lab.sent(), lab.physical(0, |p| p.unmasked)), (Vec::from([0x50]), 0));
}

#[test]
fn two_functions_cannot_have_one_line_and_none_can_have_isas() {
    let mut lab = Lab::new(1);
    let physical = FakePhysical::new(1, &lab.space);
    let description = lab.functions[0].lock().description();
    for (line, is_free) in [(PIN, false), (4, false), (24, false), (17, true)] {
        let description = Description { line: Some(line), ..description };
        let function = Assigned::in_slot(Slot(16), description, FakePhysical::new(1, &physical.space)).unwrap();
        assert_eq!(lab.bus.attach_function(function).is_ok(), is_free, "{line}");
    }
}
