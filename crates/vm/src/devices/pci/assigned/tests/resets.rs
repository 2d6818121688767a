// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest resets its function; a function vanishes.

use super::*;

fn enabled() -> Lab {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    lab
}

#[test]
fn a_function_does_not_answer_until_its_reset_is_done() {
    let mut lab = enabled();
    lab.set_config(0, DEVICE_CONTROL, RESET);
    assert_eq!((lab.physical(0, |p| p.resets), lab.phase(0)), (1, Phase::Resetting));
    assert_eq!(lab.mapped(), []);
    assert_eq!(lab.config(0, 0), u32::MAX);
    lab.enable_at(0, HIGH);
    lab.set_config(0, DEVICE_CONTROL, RESET);
    assert_eq!((lab.physical(0, |p| p.resets), lab.mapped()), (1, Vec::new()), "writes are lost");
    lab.physical(0, FakePhysical::reset_is_over);
    lab.with(0, |function, outputs| function.finish_reset(true, outputs));
    assert_eq!((lab.config(0, 0), lab.config(0, 0x10), lab.config(0, 4) & 0xffff), (0xabcd_1234, 4, 0));
    assert_eq!(lab.config(0, DEVICE_CONTROL), 0x2810, "the bit reads as zero");
    lab.enable_at(0, HIGH);
    assert_eq!(lab.mapped(), [(HIGH, 0x2000)]);
}

#[test]
fn a_function_that_is_not_reset_is_gone() {
    let mut lab = enabled();
    lab.physical(0, |p| p.refuses_reset = true);
    lab.set_config(0, DEVICE_CONTROL, RESET);
    assert_eq!((lab.phase(0), lab.config(0, 0)), (Phase::Gone, u32::MAX));
    let mut lab = enabled();
    lab.set_config(0, DEVICE_CONTROL, RESET);
    lab.with(0, |function, outputs| function.finish_reset(false, outputs));
    assert_eq!((lab.phase(0), lab.config(0, 0)), (Phase::Gone, u32::MAX));
    lab.with(0, |function, outputs| function.finish_reset(true, outputs));
    assert_eq!(lab.phase(0), Phase::Gone, "it stays so");
}

#[test]
fn a_function_that_vanishes_or_is_stopped_in_its_reset_is_gone() {
    for is_stopped in [false, true] {
        let mut lab = enabled();
        lab.set_config(0, DEVICE_CONTROL, RESET);
        match is_stopped {
            true => lab.with(0, |function, outputs| function.vanish(outputs)),
            false => lab.physical(0, |p| p.is_gone = true),
        }
        lab.with(0, |function, outputs| function.finish_reset(true, outputs));
        assert_eq!((lab.phase(0), lab.config(0, 0), lab.mapped()), (Phase::Gone, u32::MAX, Vec::new()));
    }
}

#[test]
fn a_function_that_cannot_be_reset_does_not_offer_it() {
    let mut lab = Lab::bare();
    let mut physical = FakePhysical::new(0, &lab.space);
    physical.set(0x74, 0x8001);
    let description = Description::probe(name(), &mut physical, None).unwrap();
    lab.attach(description, physical);
    lab.set_config(0, DEVICE_CONTROL, RESET);
    assert_eq!(lab.config(0, EXPRESS + 4) >> 28, 0);
    assert_eq!((lab.physical(0, |p| p.resets), lab.config(0, 0)), (0, 0xabcd_1234));
}

#[test]
fn a_function_that_vanishes_is_unmapped_and_reads_as_ones() {
    let mut lab = enabled();
    lab.with(0, |function, outputs| function.vanish(outputs));
    lab.bus.place_functions();
    assert_eq!((lab.config(0, 0), lab.mapped()), (u32::MAX, Vec::new()));
    assert_eq!(lab.read(HIGH, DWORD), 0xffff_ffff);
    lab.with(0, |function, outputs| function.raise(Raised::Vector(0), outputs));
    assert!(lab.world.outputs.is_empty());
}

#[test]
fn a_function_that_reads_as_ones_is_gone_at_the_next_write() {
    let mut lab = enabled();
    lab.physical(0, |p| p.is_gone = true);
    lab.set_config(0, 4, 0);
    assert_eq!((lab.phase(0), lab.mapped()), (Phase::Gone, Vec::new()));
    assert_eq!(lab.physical(0, |p| p.interrupts), Interrupts::Off);
}

#[test]
fn power_states_are_the_guests_alone() {
    let mut lab = enabled();
    let before = lab.physical(0, |p| p.requests);
    for (written, read) in [(3, 11), (1, 8), (2, 8), (0, 8)] {
        lab.set_config(0, POWER + 4, written);
        assert_eq!(lab.config(0, POWER + 4), read, "{written}");
    }
    assert_eq!(lab.physical(0, |p| p.requests), before);
}

#[test]
fn the_machines_reset_leaves_nothing_mapped_or_open() {
    let mut lab = enabled();
    lab.set_config(0, MSIX, 1 << 31);
    lab.functions[0].lock().reset();
    lab.bus.place_functions();
    assert_eq!((lab.mapped(), lab.physical(0, |p| p.interrupts)), (Vec::new(), Interrupts::Off));
    assert_eq!((lab.config(0, 4) & 0xffff, lab.physical(0, |p| p.get(4) & 4)), (0, 0));
}
