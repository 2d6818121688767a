// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resets in steps: what each one does, and functions that vanish, move or never come back at any of them.

use std::vec;
use std::vec::Vec;

use super::{Procedure, Progress};
use crate::Bdf;
use crate::capability::Capability;
use crate::extended::MAX_EXTENDED;
use crate::reset::{ResetError, Way};
use crate::testing::{Chip, Machine};

const PLACE: &str = "01:00.0";
const WAY: Way = Way::FunctionLevel(0x60);
const LIST: [Capability; 1] = [Capability { id: Capability::EXPRESS, register: 0x60, flags: 2 }];
/// The first step reads what is kept: eleven registers, and a list of extended capabilities.
const MOST_ACCESSES: usize = 16 + MAX_EXTENDED;

fn place() -> Bdf {
    PLACE.parse().unwrap()
}

/// Returns a function with a range and ACS that are enabled, which a reset clears.
fn chip() -> Chip {
    let mut chip = Chip::new(0x1b36, 0x0010, 0x0108, 0).with_acs(0x001d_001d).with_bar(0, 0xfe00_0004);
    (chip.writable[4], chip.writable[0x68 / 4]) = (u32::MAX, 0x7fff);
    chip.reset_by = Some((0x68, 1 << 15));
    chip
}

/// Returns the waits of a reset, and its end.
fn waits(machine: &mut Machine) -> Result<Vec<u32>, ResetError> {
    let mut procedure = Procedure::begin(machine, place(), WAY, &LIST)?;
    let mut waits = vec![];
    loop {
        let before = machine.log.len() + machine.writes.len();
        let progress = procedure.step(machine)?;
        assert!(machine.log.len() + machine.writes.len() - before <= MOST_ACCESSES);
        match progress {
            Progress::Wait(us) => waits.push(us),
            Progress::Done => return Ok(waits),
        }
    }
}

#[test]
fn a_function_that_comes_back_at_once_takes_one_wait() {
    let mut machine = Machine::with([(PLACE, chip())]);
    assert_eq!(waits(&mut machine), Ok(vec![100_000]));
    let chip = &machine.chips[&place()];
    assert_eq!((chip.resets, chip.words[4], chip.extended[&0x104]), (1, 0xfe00_0004, 0x001d_001d));
    assert_eq!((chip.words[1] & 0xffff, machine.pauses), (1 << 10, 0), "it is quiet, and no step has waited");
}

#[test]
fn checks_come_at_growing_intervals_and_end_after_a_second() {
    let (mut slow, mut never) = (chip(), chip());
    (slow.not_ready_after_reset, never.not_ready_after_reset) = (4, u32::MAX);
    let mut machine = Machine::with([(PLACE, slow)]);
    assert_eq!(waits(&mut machine), Ok(vec![100_000, 1_000, 2_000, 4_000, 8_000]));
    let mut machine = Machine::with([(PLACE, never)]);
    let mut procedure = Procedure::begin(&mut machine, place(), WAY, &LIST).unwrap();
    let mut waited = 0;
    let end = loop {
        match procedure.step(&mut machine) {
            Ok(Progress::Wait(us)) => waited += us,
            end => break end,
        }
    };
    assert_eq!((end, waited), (Err(ResetError::NotReady), 1_100_000));
}

#[test]
fn a_function_that_vanishes_at_any_access_is_not_called_reset() {
    let mut machine = Machine::with([(PLACE, chip())]);
    waits(&mut machine).unwrap();
    let accesses = machine.log.len() as u32;
    for after in 0..accesses {
        let mut chip = chip();
        chip.vanishes_after = after;
        let mut machine = Machine::with([(PLACE, chip)]);
        let end = waits(&mut machine);
        assert!(end.is_err(), "after {after} of {accesses} accesses: {end:?}");
    }
}

#[test]
fn a_function_that_does_not_keep_its_address_is_refused() {
    let mut chip = chip();
    chip.moves_at_reset = Some(0xfd00_0004);
    let mut machine = Machine::with([(PLACE, chip)]);
    assert_eq!(waits(&mut machine), Err(ResetError::Displaced));
}
