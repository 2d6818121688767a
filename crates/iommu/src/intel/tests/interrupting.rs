// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which interrupts functions send.

use super::setup::*;
use crate::hardware::Memory;
use crate::intel::Unit;
use crate::intel::model::Machine;
use crate::interrupt::Interrupt;
use crate::problem::Problem;
use crate::redirection::{Redirection, Signal};

const NETWORK: u16 = 0x308;

fn remapping(machine: &Machine, is_x2apic: bool) -> Unit<Machine> {
    let mut unit = started(machine);
    unit.remap_interrupts(&mut machine.clone(), is_x2apic).unwrap();
    unit
}

fn to(vector: u8, destination: u32) -> Interrupt {
    Interrupt { vector, destination, is_level: false }
}

#[test]
fn a_function_sends_what_was_opened_and_set_and_nothing_else() {
    let machine = machine();
    let mut unit = remapping(&machine, false);
    let (source, memory) = (function(3, 1), &mut machine.clone());
    unit.open_interrupts(memory, source, 4).unwrap();
    unit.set_interrupt(memory, source, 2, Some(to(0x61, 7))).unwrap();
    let send = |unit: &Unit<Machine>, requester, index| {
        let message = unit.message(source, index).unwrap();
        machine.interrupt(requester, message.address, message.data)
    };
    assert_eq!(send(&unit, NETWORK, 2), Ok((0x61, 7, false)));
    assert_eq!(send(&unit, NETWORK, 1), Err(0x22));
    assert_eq!(send(&unit, 0x310, 2), Err(0x26), "another function");
    assert_eq!(machine.interrupt(NETWORK, 0xfee0_7000, 0x61), Err(0x25), "in compatibility format");
    unit.set_interrupt(memory, source, 2, Some(to(0x62, 9))).unwrap();
    assert_eq!(send(&unit, NETWORK, 2), Ok((0x62, 9, false)), "moved");
    unit.set_interrupt(memory, source, 2, None).unwrap();
    assert_eq!(send(&unit, NETWORK, 2), Err(0x22));
    assert_eq!(unit.message(source, 4), Err(Problem::NoInterrupt { source }));
    unit.close_interrupts(memory, source).unwrap();
    assert_eq!(unit.message(source, 0), Err(Problem::NoInterrupt { source }));
}

#[test]
fn messages_of_one_function_differ_in_their_data_as_msi_has_it() {
    let machine = machine();
    let mut unit = remapping(&machine, true);
    unit.open_interrupts(&mut machine.clone(), function(1, 0), 5).unwrap();
    unit.open_interrupts(&mut machine.clone(), function(3, 1), 8).unwrap();
    let first = unit.message(function(3, 1), 0).unwrap();
    assert_eq!((first.address, first.data), (0xfee0_0000 | 5 << 5 | 1 << 4 | 1 << 3, 0));
    let last = unit.message(function(3, 1), 7).unwrap();
    assert_eq!((last.address, last.data), (first.address, 7));
}

#[test]
fn far_cpus_are_reached_in_x2apic_mode_only() {
    let (source, far) = (function(3, 1), to(0x30, 0x1_0000));
    for is_x2apic in [false, true] {
        let machine = machine();
        let mut unit = remapping(&machine, is_x2apic);
        unit.open_interrupts(&mut machine.clone(), source, 1).unwrap();
        let set = unit.set_interrupt(&mut machine.clone(), source, 0, Some(far));
        let message = unit.message(source, 0).unwrap();
        let sent = machine.interrupt(NETWORK, message.address, message.data);
        match is_x2apic {
            true => assert_eq!((set, sent), (Ok(()), Ok((0x30, 0x1_0000, false)))),
            false => assert_eq!((set, sent), (Err(Problem::FarDestination { destination: 0x1_0000 }), Err(0x22))),
        }
    }
}

#[test]
fn an_io_apic_sends_by_the_entry_that_its_redirection_names() {
    let machine = machine();
    let mut unit = remapping(&machine, true);
    let (apic, memory) = (function(0xf0, 0x1f), &mut machine.clone());
    let level = Signal::Interrupt(Interrupt { vector: 0x41, destination: 300, is_level: true });
    unit.open_interrupts(memory, function(3, 1), 10).unwrap();
    assert_eq!(unit.redirect(memory, apic, 9, level, true), Err(Problem::NoInterrupt { source: apic }));
    unit.open_inputs(memory, apic, 24).unwrap();
    let entry = unit.redirect(memory, apic, 9, level, true).unwrap();
    assert_eq!(entry.0 & 0x1_ffff, 0x41 | 1 << 15 | 1 << 13, "vector, level, active low, not masked");
    assert_eq!(machine.input(apic.requester(), entry.0), Ok((0x41, 300, true)));
    let nmi = unit.redirect(memory, apic, 3, Signal::Nmi { destination: 9 }, false).unwrap();
    assert_eq!(machine.input(apic.requester(), nmi.0), Ok((2, 9, false)));
    unit.open_inputs(memory, apic, 24).unwrap();
    assert_eq!(machine.input(apic.requester(), entry.0), Ok((0x41, 300, true)), "as many entries are the same ones");
    let direct = Redirection::direct(level, true);
    assert_eq!(machine.input(apic.requester(), direct.0), Err(0x25), "a CPU that the I/O APIC names itself");
}

#[test]
fn a_spare_entry_sends_when_it_is_stored_without_the_unit() {
    for is_x2apic in [false, true] {
        let machine = machine();
        let mut unit = remapping(&machine, is_x2apic);
        let (apic, memory) = (function(0xf0, 0x1f), &mut machine.clone());
        unit.open_inputs(memory, apic, 27).unwrap();
        let spare = unit.spare(apic, 26).unwrap();
        let write = spare.send(to_signal(0xe1, 5), false);
        assert_eq!(machine.input(apic.requester(), write.redirection.0), Err(0x22), "absent so far");
        let writes = machine.unit(|unit| unit.writes);
        memory.write_word(write.at, write.word);
        assert_eq!(machine.input(apic.requester(), write.redirection.0), Ok((0xe1, 5, false)));
        assert_eq!(machine.unit(|unit| unit.writes), writes);
        let left = unit.left();
        Unit::adopt(machine.clone(), memory, PLACE, left).unwrap();
    }
}

#[test]
fn interrupts_pass_again_for_an_image_that_knows_of_no_remapping() {
    let machine = machine();
    let mut unit = remapping(&machine, true);
    let (apic, memory) = (function(0xf0, 0x1f), &mut machine.clone());
    let direct = Redirection::direct(to_signal(0x41, 3), false);
    machine.input(apic.requester(), direct.0).unwrap_err();
    let frames = machine.ram(|ram| ram.in_use());
    unit.pass_interrupts(memory).unwrap();
    assert_eq!(machine.ram(|ram| ram.in_use()), frames - 1, "the table is given back");
    assert_eq!(machine.input(apic.requester(), direct.0), Ok((0x41, 3, false)));
    let mut unit = Unit::adopt(machine.clone(), memory, PLACE, unit.left()).unwrap();
    assert!(!unit.remaps_interrupts());
    unit.remap_interrupts(memory, true).unwrap();
    machine.input(apic.requester(), direct.0).unwrap_err();
    machine.unit(|unit| unit.is_unresponsive = true);
    assert!(matches!(unit.pass_interrupts(memory), Err(Problem::NoAnswer { .. })));
    assert!(unit.remaps_interrupts());
}

fn to_signal(vector: u8, destination: u32) -> Signal {
    Signal::Interrupt(to(vector, destination))
}

#[test]
fn entries_run_out_and_are_given_back() {
    let machine = machine();
    let mut unit = remapping(&machine, true);
    let memory = &mut machine.clone();
    unit.open_interrupts(memory, function(1, 0), 2048).unwrap();
    unit.open_interrupts(memory, function(2, 0), 2000).unwrap();
    let source = function(3, 0);
    assert_eq!(unit.open_interrupts(memory, source, 49), Err(Problem::NoInterrupt { source }));
    unit.open_interrupts(memory, source, 48).unwrap();
    unit.close_interrupts(memory, function(1, 0)).unwrap();
    unit.open_interrupts(memory, source, 2048).unwrap();
}

#[test]
fn interrupts_need_remapping_and_remapping_needs_the_unit() {
    let machine = machine();
    let mut unit = started(&machine);
    let memory = &mut machine.clone();
    let opened = unit.open_interrupts(memory, function(1, 0), 1);
    assert!(matches!(opened, Err(Problem::Lacks { .. })));
    machine.unit(|unit| unit.extended &= !(1 << 4));
    let mut unit = started(&machine);
    assert!(matches!(unit.remap_interrupts(memory, true), Err(Problem::Lacks { feature }) if feature.contains("EIM")));
    machine.unit(|unit| unit.extended &= !(1 << 3));
    let mut unit = started(&machine);
    assert!(matches!(unit.remap_interrupts(memory, false), Err(Problem::Lacks { feature }) if feature.contains("IR")));
}
