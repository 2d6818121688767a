// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking over, adopting, leaving.

use paging::{PhysAddr, TableMemory};
use units::KIB;

use super::super::device_table::Remapping;
use super::super::registers::*;
use super::super::{Requester, Setup, Unit};
use super::hardware::{ALL_FEATURES, Machine};
use super::operation::{HIGHEST, domain, function, setup, started};
use crate::{Domain, DomainId, Interrupt, Memory, Problem};

fn adopt(machine: &Machine) -> Result<Unit, Problem> {
    let (mut registers, memory) = machine.sides();
    Unit::adopt(&mut registers, &memory, (0, HIGHEST), |_, _| true)
}

/// A unit that another kernel has left enabled, with a device table that blocks all, and events in its log.
fn left_enabled(machine: &Machine) {
    let (mut registers, mut memory) = machine.sides();
    Unit::take_over(&mut registers, &mut memory, &setup()).unwrap();
    assert_eq!(machine.0.borrow_mut().access(9, 0, false), None);
}

#[test]
fn all_requesters_are_blocked_from_the_first_moment() {
    for features in [0, 1 << 6, ALL_FEATURES] {
        let (machine, _unit) = started(features);
        let mut state = machine.0.borrow_mut();
        for requester in (0..=HIGHEST).chain([HIGHEST + 1, u16::MAX]) {
            assert!(state.reach(requester, 0x1000, false).is_err());
            assert!(state.interrupt(requester, 0x30).is_err());
        }
    }
}

#[test]
fn a_unit_that_was_left_enabled_is_taken_over_without_a_window() {
    for features in [0, 1 << 7, ALL_FEATURES] {
        let machine = Machine::new(features);
        left_enabled(&machine);
        let (mut registers, mut memory) = machine.sides();
        machine.set(EXCLUSION_BASE, 0x5001);
        machine.0.borrow_mut().forbidden = std::vec![(8, 0x1000), (9, 0x10_0000)];
        let mut unit = Unit::take_over(&mut registers, &mut memory, &setup()).unwrap();
        assert_eq!(machine.get(EXCLUSION_BASE), 0);
        assert_eq!(unit.next_fault(&mut registers, &mut memory), Ok(None), "the other's events are gone");
    }
}

#[test]
fn what_a_kernel_before_mapped_ends_with_the_take_over() {
    let (machine, mut other) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let mut theirs = domain(&machine, 7);
    theirs.map(&mut memory, 0x1000, PhysAddr(0x5000), 4 * KIB, true).unwrap();
    other.attach(&mut registers, &mut memory, function(8), &theirs).unwrap();
    other.open_interrupts(&mut registers, &mut memory, function(8), 1).unwrap();
    let interrupt = Interrupt { vector: 0x41, destination: 1, is_level: false };
    other.set_interrupt(&mut registers, &mut memory, function(8), 0, Some(interrupt)).unwrap();
    assert!(machine.0.borrow_mut().reach(8, 0x1000, true).is_ok());
    assert!(machine.0.borrow_mut().interrupt(8, 0).is_ok());
    let _unit = Unit::take_over(&mut registers, &mut memory, &setup()).unwrap();
    assert!(machine.0.borrow_mut().reach(8, 0x1000, true).is_err());
    assert!(machine.0.borrow_mut().interrupt(8, 0).is_err());
}

#[test]
fn named_requesters_keep_what_firmware_wants() {
    let machine = Machine::new(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let mut reserved = domain(&machine, 3);
    reserved.map(&mut memory, 0x9000, PhysAddr(0x9000), 4 * KIB, true).unwrap();
    let named = [
        Requester { requester: 0xa0, flags: 0xd7, passes_interrupts: true, domain: None },
        Requester {
            requester: 0x10,
            flags: 0x30,
            passes_interrupts: false,
            domain: Some((reserved.id(), reserved.root())),
        },
        Requester { requester: u16::MAX, flags: 0, passes_interrupts: true, domain: None },
    ];
    let setup = Setup { flags: 0b1111, requesters: &named, ..setup() };
    let unit = Unit::take_over(&mut registers, &mut memory, &setup).unwrap();
    assert_eq!(machine.get(CONTROL) & 0xfff, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11);
    assert_eq!(unit.attached(&memory, function(0x10)), Ok(Some((DomainId(3), reserved.root()))));
    let mut state = machine.0.borrow_mut();
    assert_eq!(state.interrupt(0xa0, 0x30), Ok((0x30, 0)));
    assert!(state.reach(0xa0, 0x9000, false).is_err());
    assert_eq!(state.reach(0x10, 0x9000, true), Ok(0x9000));
    assert!(state.interrupt(0x10, 0x30).is_err());
    let base = state.register(DEVICE_TABLE_BASE) & ADDRESS;
    assert_eq!(state.load(base + 0xa0 * 32 + 8) >> 40 & 0b11, 1, "SysMgt");
    assert_eq!(state.load(base + 0xa0 * 32 + 16) >> 56, 0b1100_0111, "INIT, ExtInt, NMI; LINT0 and LINT1");
    assert_eq!(state.load(base + 0xa0 * 32 + 16) & 1, 0, "IV");
    drop(state);
    assert_eq!(unit.table.remapping(&memory, 0xa0), Remapping::Passed);
}

#[test]
fn an_adopted_unit_works_on_and_nothing_was_written() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let mut theirs = domain(&machine, 7);
    theirs.map(&mut memory, 0x1000, PhysAddr(0x5000), 4 * KIB, true).unwrap();
    unit.attach(&mut registers, &mut memory, function(8), &theirs).unwrap();
    unit.open_interrupts(&mut registers, &mut memory, function(8), 2).unwrap();
    let writes = machine.writes();
    let mut unit = adopt(&machine).unwrap();
    assert_eq!(machine.writes(), writes);
    let (id, root) = unit.attached(&memory, function(8)).unwrap().unwrap();
    let mut ours = Domain::<super::super::AmdFormat>::adopt(id, root, paging::PageSize::Gib1);
    assert_eq!(machine.0.borrow_mut().reach(8, 0x1000, true), Ok(0x5000));
    ours.unmap(&mut memory, 0x1000, 4 * KIB).unwrap();
    unit.invalidate(&mut registers, &mut memory, id).unwrap();
    assert!(machine.0.borrow_mut().reach(8, 0x1000, true).is_err());
    let interrupt = Interrupt { vector: 0x41, destination: 1 << 20, is_level: true };
    unit.set_interrupt(&mut registers, &mut memory, function(8), 1, Some(interrupt)).unwrap();
    assert_eq!(machine.0.borrow_mut().interrupt(8, 1), Ok((0x41, 1 << 20)));
}

/// A change of a register's value.
type Change = fn(u64) -> u64;

#[test]
fn what_is_not_as_it_was_left_is_not_adopted() {
    let control = |machine: &Machine| machine.get(CONTROL);
    let wrongs: [(u32, Change); 15] = [
        (CONTROL, |value| value & !1),
        (CONTROL, |value| value & !control::COMMANDS),
        (CONTROL, |value| value & !control::EVENT_LOG),
        (CONTROL, |value| value | 1 << 34),
        (CONTROL, |value| value & !control::WIDE_INTERRUPTS),
        (CONTROL, |_| u64::MAX),
        (EXTENDED_FEATURES, |_| u64::MAX),
        (EXTENDED_FEATURES, |value| value | 0b11 << 10),
        (EXCLUSION_BASE, |_| 1),
        (STATUS, |_| 0),
        (DEVICE_TABLE_BASE, |value| value | 0x100),
        (DEVICE_TABLE_BASE, |value| value & !0x1ff),
        (COMMAND_BASE, |value| value + 4096),
        (EVENT_BASE, |value| value + (1 << 56)),
        (COMMAND_TAIL, |_| 4112),
    ];
    for (at, (register, change)) in wrongs.into_iter().enumerate() {
        let (machine, _unit) = started(ALL_FEATURES);
        assert!(adopt(&machine).is_ok());
        machine.set(register, change(machine.get(register)));
        assert!(adopt(&machine).is_err(), "wrong {at}, control {:#x}", control(&machine));
    }
    let (machine, _unit) = started(ALL_FEATURES);
    for register in [DEVICE_TABLE_BASE, COMMAND_BASE, EVENT_BASE] {
        let (mut registers, memory) = machine.sides();
        let foreign = machine.get(register) & ADDRESS;
        let refused = Unit::adopt(&mut registers, &memory, (0, HIGHEST), |at, _| at.0 != foreign);
        assert!(matches!(refused, Err(Problem::NotAdopted { .. })), "{refused:?}");
    }
}

#[test]
fn an_answer_to_the_image_before_is_not_taken_for_ones_own() {
    let (machine, mut unit) = started(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    machine.0.borrow_mut().is_dead = true;
    assert!(unit.invalidate(&mut registers, &mut memory, DomainId(7)).is_err());
    let mut unit = adopt(&machine).unwrap();
    let base = machine.get(COMMAND_BASE) & ADDRESS;
    let late = memory.read_word(PhysAddr(base + 4096)) + 1;
    memory.write_word(PhysAddr(base + 4096), late);
    assert!(unit.invalidate(&mut registers, &mut memory, DomainId(7)).is_err());
    machine.0.borrow_mut().is_dead = false;
    unit.invalidate(&mut registers, &mut memory, DomainId(7)).unwrap();
}

#[test]
fn a_unit_that_is_left_is_disabled_and_its_memory_is_back() {
    let machine = Machine::new(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    let _other = memory.allocate();
    let pages = machine.pages();
    let mut unit = Unit::take_over(&mut registers, &mut memory, &setup()).unwrap();
    unit.open_interrupts(&mut registers, &mut memory, function(8), 2).unwrap();
    unit.leave(&mut registers, &mut memory).unwrap();
    assert_eq!((machine.get(CONTROL), machine.get(STATUS)), (0, 0));
    assert_eq!(machine.pages(), pages);
}

#[test]
fn a_refused_take_over_changes_nothing() {
    for pieces in 0..3 {
        let machine = Machine::new(ALL_FEATURES);
        let (mut registers, mut memory) = machine.sides();
        machine.0.borrow_mut().pieces_left = pieces;
        let refused = Unit::take_over(&mut registers, &mut memory, &setup()).err();
        assert_eq!((refused, machine.pages(), machine.get(CONTROL)), (Some(Problem::OutOfMemory), 0, 0));
    }
    for (features, control) in [(u64::MAX, 0), (0, u64::MAX), (0b11 << 10, 0)] {
        let machine = Machine::new(features);
        machine.set(CONTROL, control);
        let writes = machine.writes();
        let (mut registers, mut memory) = machine.sides();
        assert!(Unit::take_over(&mut registers, &mut memory, &setup()).is_err());
        assert_eq!(machine.writes(), writes);
    }
}

#[test]
fn a_take_over_of_a_unit_that_does_not_answer_ends() {
    let machine = Machine::new(ALL_FEATURES);
    let (mut registers, mut memory) = machine.sides();
    machine.0.borrow_mut().is_dead = true;
    let refused = Unit::take_over(&mut registers, &mut memory, &setup()).err();
    assert_eq!(refused, Some(Problem::NoAnswer { what: "its commands" }));
    let machine = Machine::new(ALL_FEATURES);
    left_enabled(&machine);
    let (mut registers, mut memory) = machine.sides();
    let pages = machine.pages();
    machine.0.borrow_mut().is_dead = true;
    let refused = Unit::take_over(&mut registers, &mut memory, &setup()).err();
    assert_eq!(refused, Some(Problem::NoAnswer { what: "stopping its command buffer" }));
    assert_eq!(machine.pages(), pages, "the unit does not know of the new tables");
}
