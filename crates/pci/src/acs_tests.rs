// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::testing::{Chip, Machine};

const PLACE: &str = "01:00.0";

fn machine(extended: impl IntoIterator<Item = (u16, u32)>) -> (Machine, Bdf) {
    let mut chip = Chip::new(0x8086, 0x10d3, 0x0200, 0);
    chip.extended.extend(extended);
    (Machine::with([(PLACE, chip)]), PLACE.parse().unwrap())
}

fn read(extended: impl IntoIterator<Item = (u16, u32)>) -> Option<Acs> {
    let (mut machine, place) = machine(extended);
    Acs::read(&mut machine, place)
}

#[test]
fn the_capability_is_found_behind_others() {
    let behind = [(0x100, 0x1401_0001), (0x140, 0x2000_0003), (0x200, 0x0001_000d), (0x204, 0x001d_005f)];
    assert_eq!(read(behind), Some(Acs { register: 0x200, services: 0x5f, control: 0x1d }));
    assert_eq!(read([(0x100, 0x1401_0001), (0x140, 0)]), None);
}

#[test]
fn without_extended_registers_there_is_none() {
    assert_eq!(read([]), None);
    assert_eq!(read([(0x100, 0x0001_000d), (0x104, u32::MAX)]), None);
}

#[test]
fn a_capability_that_reaches_past_the_functions_registers_is_none() {
    let at = |register: u16| {
        let (mut machine, place) =
            machine([(0x100, u32::from(register) << 20 | 0x1_0001), (register, 0x0001_000d), (register + 4, 0x1d)]);
        let found = Acs::read(&mut machine, place);
        assert!(machine.log.iter().all(|(_, register)| *register < 0x1000));
        found.map(|acs| acs.register)
    };
    assert_eq!((at(0xff8), at(0xffc)), (Some(0xff8), None));
}

#[test]
fn a_list_that_loops_ends() {
    for next in [0x100, 0x104] {
        let (mut machine, place) = machine([(0x100, 0x1041_0001), (0x104, next << 20 | 0x1_0002)]);
        assert_eq!(Acs::read(&mut machine, place), None);
        assert!(machine.log.len() <= extended::MAX_EXTENDED);
    }
}

#[test]
fn all_services_that_exist_are_needed_and_no_exemption() {
    let isolates = |services, control| Acs { register: 0x100, services, control }.isolates();
    assert!(isolates(0x1d, 0x1d) && isolates(0x1f, 0x1f) && isolates(0x0c, 0x0c) && isolates(0, 0));
    for missing in [0x01, 0x04, 0x08, 0x10] {
        assert!(!isolates(0x1d, 0x1d & !missing), "without {missing:#x}");
    }
    assert!(!isolates(0x7f, 0x3d), "egress control exempts ports");
    assert!(!isolates(0x7f, 0x5d), "translated requests go their own way");
}

#[test]
fn enabling_changes_what_is_necessary_and_believes_what_is_read() {
    let (mut machine, place) = machine([(0x100, 0x0001_000d), (0x104, 0x0062_005f)]);
    let mut acs = Acs::read(&mut machine, place).unwrap();
    assert!(!acs.isolates());
    assert!(acs.enable(&mut machine, place));
    assert_eq!(machine.chips[&place].extended[&0x104], 0x001f_005f);
    assert_eq!(Acs::read(&mut machine, place), Some(acs));
    machine.chips.clear();
    acs.control = 0;
    assert!(!acs.enable(&mut machine, place), "it is gone");
}

proptest! {
    #[test]
    fn whatever_the_registers_hold_reading_ends(
        words in prop::collection::btree_map((0x40..0x400u16).prop_map(|word| word * 4), any::<u32>(), 0..200),
        first in 0x100..0x1000u32,
    ) {
        let (mut machine, place) = machine(words.into_iter().chain([(0x100, first << 20 | 0x1_0001)]));
        let found = Acs::read(&mut machine, place);
        prop_assert!(machine.log.len() <= extended::MAX_EXTENDED + 1);
        if let Some(mut acs) = found {
            acs.enable(&mut machine, place);
            prop_assert_eq!(Acs::read(&mut machine, place).map(|acs| acs.isolates()), Some(acs.isolates()));
        }
    }
}
