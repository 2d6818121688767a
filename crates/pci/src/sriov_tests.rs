// SPDX-License-Identifier: MIT OR Apache-2.0
//! SR-IOV capabilities: the values read from them, and malformed ones.

use std::format;
use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;

use super::{Unusable, VirtualFunctions};
use crate::extended::MAX_EXTENDED;
use crate::testing::{Chip, Machine};
use crate::{Bdf, Filter, Function, Scan, Step};

const BRIDGE: &str = "00:01.0";
const DISK: &str = "01:00.0";
const AT: u16 = 0x160;

fn place(text: &str) -> Bdf {
    text.parse().unwrap()
}

/// Returns a disk with `total` virtual functions, the first one right behind it, behind another extended capability.
fn disk(total: u16) -> Chip {
    let mut chip = Chip::new(0x1b36, 0x0010, 0x0108, 0);
    let counts = u32::from(total) << 16 | u32::from(total);
    chip.extended.extend([(0x100, u32::from(AT) << 20 | 0x0001_000e), (AT, 0x0001_0010)]);
    chip.extended.extend([(AT + 0x0c, counts), (AT + 0x14, 0x0001_0001), (AT + 0x18, 0x0010_0000)]);
    chip.extended.extend([(AT + 0x1c, 0x553), (AT + 0x24, 0xfe00_000c)]);
    chip
}

fn machine(chip: Chip) -> Machine {
    Machine::with([(BRIDGE, Chip::bridge(1)), (DISK, chip)])
}

fn read(chip: Chip) -> Option<Result<VirtualFunctions, Unusable>> {
    VirtualFunctions::read(&mut machine(chip), place(DISK))
}

fn changed(word: u16, value: u32) -> Option<Result<VirtualFunctions, Unusable>> {
    let mut chip = disk(4);
    chip.extended.insert(AT + word, value);
    read(chip)
}

fn functions(machine: &mut Machine) -> Vec<Function> {
    let mut found = Vec::new();
    let mut scan = Scan::new(&Filter::All, 0, [0]);
    while scan.step(machine, &mut |function| found.push(function)) == Step::More {}
    found
}

/// Returns the places of a disk's first and last virtual function, beside another function if there is one.
fn places(chip: Chip, other: Option<&'static str>) -> Result<(Bdf, Bdf), Unusable> {
    let virtual_functions = read(chip.clone()).unwrap()?;
    let mut machine = machine(chip);
    let mut found = functions(&mut machine);
    if let Some(other) = other {
        found.push(Function { place: place(other), ..found[1].clone() });
    }
    let places = virtual_functions.places(place(DISK), &found)?;
    Ok((*places.start(), *places.end()))
}

#[test]
fn a_disks_virtual_functions_follow_it() {
    let read = read(disk(4)).unwrap().unwrap();
    assert_eq!((read.total, read.device), (4, 0x0010));
    assert_eq!(places(disk(4), None), Ok((place("01:00.1"), place("01:00.4"))));
    assert_eq!(places(disk(255), None), Ok((place("01:00.1"), place("01:1f.7"))), "up to the end of the bus");
}

#[test]
fn a_function_that_can_have_none_has_none() {
    assert_eq!(read(Chip::new(0x1b36, 0x0010, 0x0108, 0)), None);
    assert_eq!(read(disk(0)), None);
}

#[test]
fn counts_and_ranges_that_lie_are_refused() {
    assert_eq!(changed(0x0c, 0x0004_0005), Some(Err(Unusable::Counts { initial: 5, total: 4 })));
    assert_eq!(changed(0x0c, 0x0004_0003), Some(Err(Unusable::Counts { initial: 3, total: 4 })));
    assert_eq!(changed(0x1c, 0x552), Some(Err(Unusable::PageSizes(0x552))));
    assert_eq!(changed(0x24, 0xc001), Some(Err(Unusable::Range { index: 0 })), "ports");
    assert_eq!(changed(0x2c, 0x6), Some(Err(Unusable::Range { index: 2 })), "no kind of memory");
    assert_eq!(changed(0x38, 0x4), Some(Err(Unusable::Range { index: 5 })), "half of a range");
    let mut migrates = disk(4);
    migrates.extended.extend([(AT + 0x04, 1), (AT + 0x0c, 0x0004_0003)]);
    assert_eq!(read(migrates).unwrap().unwrap().total, 4);
}

#[test]
fn identifiers_that_are_anothers_or_lead_elsewhere_are_refused() {
    let with = |offset_and_stride: u32| {
        let mut chip = disk(4);
        chip.extended.insert(AT + 0x14, offset_and_stride);
        chip
    };
    assert_eq!(places(with(0x0000_0001), None), Err(Unusable::OneIdentifier));
    assert_eq!(places(with(0x0001_0000), None), Err(Unusable::OneIdentifier), "its own");
    assert_eq!(places(disk(256), None), Err(Unusable::PastBuses { last: 1 }));
    assert_eq!(places(with(0xffff_ffff), None), Err(Unusable::PastBuses { last: 1 }), "past the last bus of all");
    assert_eq!(places(disk(4), Some("01:00.3")), Err(Unusable::Overlaps(place("01:00.3"))));
    assert_eq!(places(with(0x0002_0001), Some("01:00.4")), Ok((place("01:00.1"), place("01:00.7"))), "between two");
    for reason in [Unusable::OneIdentifier, Unusable::PastBuses { last: 1 }, Unusable::Overlaps(place(DISK))] {
        assert!(!reason.to_string().is_empty());
    }
}

#[test]
fn a_function_that_vanishes_at_any_access_has_none() {
    let mut machine = machine(disk(4));
    assert!(VirtualFunctions::read(&mut machine, place(DISK)).is_some_and(|read| read.is_ok()));
    for after in 0..machine.log.len() as u32 {
        let mut chip = disk(4);
        chip.vanishes_after = after;
        assert!(!matches!(read(chip), Some(Ok(_))), "after {after} accesses");
    }
}

proptest! {
    #[test]
    fn any_capability_is_read_in_bounded_time_and_names_places_of_its_own(
        words in prop::collection::vec((0u16..16, prop_oneof![any::<u32>(), 0u32..0x1_0010]), 0..16),
        other in any::<u16>(),
        vanishes_after in prop_oneof![4 => Just(u32::MAX), 1 => 0u32..64],
    ) {
        let mut chip = disk(4);
        chip.extended.extend(words.into_iter().map(|(word, value)| (AT + word * 4, value)));
        chip.vanishes_after = vanishes_after;
        let mut machine = machine(chip);
        let result = VirtualFunctions::read(&mut machine, place(DISK));
        prop_assert!(machine.log.len() <= MAX_EXTENDED + 12);
        let Some(Ok(read)) = result else { return Ok(()) };
        let mut machine = self::machine(disk(4));
        let mut found = functions(&mut machine);
        found.push(Function { place: Bdf::of_requester(0, other), ..found[1].clone() });
        match read.places(place(DISK), &found) {
            Ok(places) => {
                prop_assert!((places.start().bus, places.end().bus) == (1, 1));
                prop_assert!(!(places.contains(&place(DISK)) || read.total == 1 && *places.start() == found[2].place));
            }
            Err(reason) => drop(format!("{reason}")),
        }
    }
}
