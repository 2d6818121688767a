// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adopting what an image before has left.

use units::PhysAddr;

use super::setup::*;
use crate::intel::model::{Hardware, Machine, Ram};
use crate::intel::{Left, Unit};
use crate::interrupt::Interrupt;
use crate::problem::Problem;

const INTERRUPT: Interrupt = Interrupt { vector: 0x50, destination: 2, is_level: false };

/// Leaves a unit with one function attached, which has four interrupts.
fn left(machine: &Machine) -> Left {
    let (source, memory) = (function(3, 1), &mut machine.clone());
    let mut unit = started(machine);
    let domain = one_page(machine, 1);
    unit.attach(memory, source, &domain).unwrap();
    unit.remap_interrupts(memory, true).unwrap();
    unit.open_interrupts(memory, source, 4).unwrap();
    unit.set_interrupt(memory, source, 1, Some(INTERRUPT)).unwrap();
    unit.left()
}

fn adopt(machine: &Machine, left: Left) -> Result<Unit<Machine>, Problem> {
    Unit::adopt(machine.clone(), &machine.clone(), PLACE, left)
}

#[test]
fn a_unit_is_adopted_without_a_write_and_goes_on() {
    let machine = machine();
    let left = left(&machine);
    let before = (machine.unit(|unit| unit.writes), machine.ram(|ram| ram.stores));
    let mut unit = adopt(&machine, left).unwrap();
    assert_eq!((machine.unit(|unit| unit.writes), machine.ram(|ram| ram.stores)), before);
    let (source, memory) = (function(3, 1), &mut machine.clone());
    assert_eq!(unit.left(), left);
    assert_eq!(machine.access(0x308, 0x5000, true), Ok(0x9000));
    let message = unit.message(source, 1).unwrap();
    assert_eq!(machine.interrupt(0x308, message.address, message.data), Ok((0x50, 2, false)));
    assert_eq!(unit.message(source, 4), Err(Problem::NoInterrupt { source }));
    unit.open_interrupts(memory, function(4, 0), 1).unwrap();
    assert_ne!(unit.message(function(4, 0), 0).unwrap().address, message.address);
    unit.block(memory, source).unwrap();
    machine.access(0x308, 0x5000, true).unwrap_err();
}

#[test]
fn registers_that_are_not_as_left_are_refused_with_the_reason() {
    let refused = |change: fn(&mut Hardware), words: &str| {
        let machine = machine();
        let left = left(&machine);
        machine.unit(change);
        match adopt(&machine, left).map(|_| ()) {
            Err(Problem::NotAdopted { reason }) => assert!(reason.contains(words), "{reason}"),
            answer => panic!("{words}: {answer:?}"),
        }
    };
    refused(|unit| unit.status &= !(1 << 31), "translation is disabled");
    refused(|unit| unit.status &= !(1 << 26), "queued invalidation is disabled");
    refused(|unit| unit.status &= !(1 << 25), "interrupt remapping");
    refused(|unit| unit.status |= 1 << 23, "compatibility");
    refused(|unit| unit.root += 0x1000, "root table");
    refused(|unit| unit.root |= 1 << 10, "root table");
    refused(|unit| unit.interrupts ^= 1, "remapping table");
    refused(|unit| unit.faults |= 1 << 4, "error");
    refused(|unit| unit.move_queue(0x1000, 0), "elsewhere");
    refused(|unit| unit.move_queue(0, 16), "not empty");
}

#[test]
fn tables_that_are_not_as_left_are_refused_with_the_reason() {
    let refused = |change: fn(&mut Ram, Left), words: &str| {
        let machine = machine();
        let left = left(&machine);
        machine.ram(|ram| change(ram, left));
        match adopt(&machine, left).map(|_| ()) {
            Err(Problem::NotAdopted { reason }) => assert!(reason.contains(words), "{reason}"),
            answer => panic!("{words}: {answer:?}"),
        }
    };
    refused(|ram, left| ram.store(left.root.0 + 3 * 16 + 8, 1), "root table");
    refused(|ram, left| ram.store(left.root.0 + 5 * 16, 1), "root table");
    refused(|ram, left| change_context(ram, left, 0, 1 << 3), "context entry");
    refused(|ram, left| change_context(ram, left, 1, 3), "context entry");
    refused(|ram, left| change_context(ram, left, 1, 1 << 8), "context entry");
    refused(|ram, left| change_context(ram, left, 1, 1 << 40), "context entry");
    refused(|ram, left| ram.store(left.interrupts.unwrap().0 + 16, 5 | 0x50 << 16), "remapping entry");
    refused(|ram, left| ram.store(left.interrupts.unwrap().0 + 24, 0x309), "remapping entry");
    refused(|ram, left| ram.store(left.interrupts.unwrap().0 + 10 * 16 + 8, 0x4_0308), "remapping entry");
}

fn change_context(ram: &mut Ram, left: Left, word: u64, bits: u64) {
    let at = (ram.load(left.root.0 + 3 * 16) & !0xfff) + 8 * 16 + word * 8;
    let before = ram.load(at);
    ram.store(at, before ^ bits);
}

#[test]
fn a_unit_in_reset_or_gone_is_not_adopted() {
    let nothing = Left { root: PhysAddr(0), queue: PhysAddr(0), interrupts: None };
    let machine = machine();
    assert!(matches!(adopt(&machine, nothing), Err(Problem::NotAdopted { .. })));
    machine.unit(|unit| unit.is_gone = true);
    assert!(matches!(adopt(&machine, nothing), Err(Problem::Absurd { .. })));
}
