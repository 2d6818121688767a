// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths of ranges, of functions that keep to the specification and of others.

use proptest::prelude::*;

use super::{SizedBar, SizingError, sizes};
use crate::Bdf;
use crate::bar::Space;
use crate::testing::{Chip, Machine};

const PLACE: &str = "00:02.0";

fn place() -> Bdf {
    PLACE.parse().unwrap()
}

fn machine(chip: Chip) -> Machine {
    Machine::with([(PLACE, chip)])
}

fn device() -> Chip {
    Chip::new(0x8086, 0x10d3, 0x0200, 0)
}

#[test]
fn each_kind_of_range_has_its_length() {
    let chip = device()
        .with_range(0, 0xfeb8_0000, 0xfffe_0000)
        .with_range(2, 0xc041, 0xffe0)
        .with_range(4, 0x0000_000c, 0xffff_c000)
        .with_range(5, 0x80, 0xffff_ffff);
    let before = chip.words;
    let mut machine = machine(chip);
    let found = sizes(&mut machine, place()).unwrap();
    let memory = Space::Memory32 { is_prefetchable: false };
    let wide = Space::Memory64 { is_prefetchable: true };
    let expected = [
        SizedBar { index: 0, space: memory, address: 0xfeb8_0000, bytes: 0x2_0000 },
        SizedBar { index: 2, space: Space::Ports, address: 0xc040, bytes: 32 },
        SizedBar { index: 4, space: wide, address: 0x80_0000_0000, bytes: 0x4000 },
    ];
    assert_eq!(found.as_slice(), expected);
    assert_eq!(machine.chips[&place()].words, before, "its registers are as before");
}

#[test]
fn a_range_larger_than_4_gib_has_its_length() {
    let chip = device().with_range(0, 0x4, 0).with_range(1, 0x20, 0xffff_fff0);
    let found = sizes(&mut machine(chip), place()).unwrap();
    assert_eq!((found[0].bytes, found[0].address), (16 << 32, 0x20_0000_0000));
}

#[test]
fn what_no_range_can_be_is_refused() {
    let absurd = |chip: Chip| matches!(sizes(&mut machine(chip), place()), Err(SizingError::Absurd { .. }));
    assert!(absurd(device().with_range(0, 0, 0xffff_00f0)), "a hole in its bits");
    assert!(absurd(device().with_range(5, 0x4, 0xffff_0000)), "half a range");
    assert!(absurd(device().with_range(0, 1, 0xffff_fffe)), "its kind changes, and two ports are none");
    assert!(absurd(device().with_range(0, 1, 0xffff_0000)), "more ports than there may be");
    let gone = Err(SizingError::Gone);
    assert_eq!(sizes(&mut Machine::default(), place()), gone);
}

#[test]
fn a_function_that_vanishes_meanwhile_is_refused() {
    for accesses in 0..8 {
        let mut chip = device().with_range(0, 0xfeb8_0000, 0xfffe_0000);
        chip.vanishes_after = accesses;
        assert!(sizes(&mut machine(chip), place()).is_err(), "after {accesses}");
    }
}

proptest! {
    #[test]
    fn its_command_and_status_are_as_before_for_any_registers(
        words in prop::array::uniform6(any::<u32>()),
        masks in prop::array::uniform6(any::<u32>()),
        command: u16,
    ) {
        let mut chip = device();
        for index in 0..6 {
            chip = chip.with_range(index, words[index], masks[index]);
        }
        chip.words[1] = 0x0010_0000 | u32::from(command);
        let before = chip.words;
        let mut machine = machine(chip);
        if let Ok(found) = sizes(&mut machine, place()) {
            prop_assert!(found.iter().all(|bar| bar.bytes.is_power_of_two()));
        }
        prop_assert_eq!(machine.chips[&place()].words, before);
    }
}
