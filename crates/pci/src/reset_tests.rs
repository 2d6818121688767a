// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resets: the way that a function has, and one that does not come back.

use super::{ResetError, Way, reset_in_place, stop_mastering, way};
use crate::Bdf;
use crate::capability::Capability;
use crate::testing::{Chip, Machine};

const PLACE: &str = "01:00.0";

fn place() -> Bdf {
    PLACE.parse().unwrap()
}

fn device() -> Chip {
    Chip::new(0x1b36, 0x0010, 0x0108, 0)
}

fn capability(id: u8, register: u8) -> Capability {
    Capability { id, register, flags: 0 }
}

/// Returns a function with function-level reset by its PCI Express capability at 0x60.
fn express() -> Chip {
    let mut chip = device();
    chip.words[0x64 / 4] = 1 << 28;
    chip.writable[0x68 / 4] = 0x7fff;
    chip.reset_by = Some((0x68, 1 << 15));
    chip
}

#[test]
fn the_way_is_the_one_that_the_function_has() {
    let list = [
        capability(Capability::POWER_MANAGEMENT, 0x40),
        capability(Capability::EXPRESS, 0x60),
        capability(super::way::ADVANCED_FEATURES, 0x80),
    ];
    let mut chip = express();
    chip.words[0x80 / 4] = 0b11 << 24;
    let found = |chip: &Chip| way(&mut Machine::with([(PLACE, chip.clone())]), place(), &list);
    assert_eq!(found(&chip), Some(Way::FunctionLevel(0x60)));
    chip.words[0x64 / 4] = 0;
    assert_eq!(found(&chip), Some(Way::AdvancedFeatures(0x80)));
    chip.words[0x80 / 4] = 0b01 << 24;
    assert_eq!(found(&chip), Some(Way::Power(0x40)), "FLR needs the bit for pending transactions, too");
    chip.words[0x44 / 4] = 1 << 3;
    assert_eq!(found(&chip), None, "its state outlives D3hot");
    assert_eq!(way(&mut Machine::default(), place(), &list), None, "it is gone");
}

#[test]
fn it_is_quiet_before_and_after() {
    let mut chip = express();
    chip.words[1] = 0b111;
    chip.not_ready_after_reset = 7;
    let mut machine = Machine::with([(PLACE, chip)]);
    reset_in_place(&mut machine, place(), Way::FunctionLevel(0x60), &[]).unwrap();
    let chip = &machine.chips[&place()];
    assert_eq!((chip.resets, chip.words[1] & 0xffff), (1, 1 << 10));
    assert!(machine.pauses >= 100_000, "nothing is accessed for a tenth of a second");
}

#[test]
fn pending_transactions_are_waited_for_and_not_for_ever() {
    let mut chip = express();
    chip.words[0x68 / 4] = 1 << 21;
    let mut machine = Machine::with([(PLACE, chip)]);
    reset_in_place(&mut machine, place(), Way::FunctionLevel(0x60), &[]).unwrap();
    assert_eq!(machine.pauses, 200_000);
}

#[test]
fn by_power_it_goes_to_d3hot_and_back() {
    let mut chip = device();
    chip.writable[0x44 / 4] = 0b11;
    let mut machine = Machine::with([(PLACE, chip)]);
    reset_in_place(&mut machine, place(), Way::Power(0x40), &[]).unwrap();
    assert_eq!((machine.chips[&place()].words[0x44 / 4], machine.pauses), (0, 20_000));
}

#[test]
fn a_function_that_does_not_come_back_is_named() {
    let mut chip = express();
    chip.not_ready_after_reset = u32::MAX;
    let mut machine = Machine::with([(PLACE, chip)]);
    assert_eq!(reset_in_place(&mut machine, place(), Way::FunctionLevel(0x60), &[]), Err(ResetError::NotReady));
    assert_eq!(machine.pauses, 100_000 + 1_000_000, "a second");
    let mut absent = Machine::default();
    assert_eq!(reset_in_place(&mut absent, place(), Way::Power(0x40), &[]), Err(ResetError::Gone));
}

#[test]
fn it_has_the_addresses_that_it_had() {
    let mut chip = express();
    (chip.words[4], chip.words[5], chip.words[15]) = (0xfe00_0004, 0x1, 0x0b);
    for word in [3, 4, 5, 15] {
        chip.writable[word] = u32::MAX;
    }
    chip.words[3] = 0x10;
    (chip.words[0x68 / 4], chip.words[0x70 / 4], chip.words[0x88 / 4]) = (0x20, 0x40, 0x5);
    let mut machine = Machine::with([(PLACE, chip)]);
    let list = [Capability { id: Capability::EXPRESS, register: 0x60, flags: 2 }];
    reset_in_place(&mut machine, place(), Way::FunctionLevel(0x60), &list).unwrap();
    let written = |register| machine.written(place(), register);
    assert_eq!((written(0x10), written(0x14)), ([0xfe00_0004].into(), [0x1].into()));
    assert_eq!((written(0x0c), written(0x3c)), ([0x10].into(), [0x0b].into()));
    assert_eq!(written(0x68), [0x8020, 0x0020], "the largest payload; the reset is not asked for again");
    assert_eq!((written(0x70), written(0x88)), ([0x40].into(), [0x5].into()));
    let mut absent = Machine::default();
    assert_eq!(reset_in_place(&mut absent, place(), Way::Power(0x40), &list), Err(ResetError::Gone));
    assert!(absent.writes.is_empty());
}

#[test]
fn a_function_is_stopped_and_decodes_as_before_and_a_bridge_is_left_alone() {
    let mut chip = device();
    (chip.words[1], chip.writable[1]) = (0xf810_0107, 0xffff);
    let mut bridge = chip.clone();
    bridge.words[3] = 0x0001_0000;
    let mut machine = Machine::with([(PLACE, chip), ("02:00.0", bridge)]);
    stop_mastering(&mut machine, place());
    assert_eq!(machine.written(place(), 4), [0x0503], "the status is not written");
    for other in ["02:00.0", "03:00.0"] {
        let other: Bdf = other.parse().unwrap();
        stop_mastering(&mut machine, other);
        assert!(machine.written(other, 4).is_empty());
    }
}

#[test]
fn a_function_is_kept_apart_from_its_siblings_after_a_reset_as_before() {
    let list = [capability(Capability::EXPRESS, 0x60)];
    for (before, writes) in [(0x001d_001d, 1), (0x0000_001d, 0)] {
        let mut machine = Machine::with([(PLACE, express().with_acs(before))]);
        reset_in_place(&mut machine, place(), Way::FunctionLevel(0x60), &list).unwrap();
        let chip = &machine.chips[&place()];
        assert_eq!((chip.resets, chip.extended[&0x104]), (1, before));
        assert_eq!(machine.written(place(), 0x106).len(), writes);
    }
}
