// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of message signalled interrupts, of functions with and without 64 bits and masks.

use super::{disable, enable_msi, enable_msix};
use crate::testing::{Chip, Machine};
use crate::{Bdf, ConfigSpace as _};

const MSI: u16 = 0x50;
const MSIX: u16 = 0x70;
const MESSAGE: (u64, u16) = (0x1_fee0_1000, 0x4051);

fn place() -> Bdf {
    "01:00.0".parse().unwrap()
}

/// Returns a function with both capabilities; `msi` is the message control of MSI.
fn machine(msi: u32) -> Machine {
    let mut chip = Chip::new(0x1b36, 0x0010, 0x0108, 0);
    (chip.words[0x50 / 4], chip.words[0x70 / 4]) = (msi << 16 | 5, 0x0010_0011);
    for word in (0x50..0x80).step_by(4) {
        chip.writable[word / 4] = u32::MAX;
    }
    Machine::with([("01:00.0", chip)])
}

fn words(machine: &mut Machine) -> [u32; 5] {
    [0, 4, 8, 12, 16].map(|offset| machine.read(place(), MSI + offset))
}

#[test]
fn an_address_of_64_bits_has_its_data_behind_it_and_its_masks_behind_that() {
    let mut machine = machine(0x018a);
    enable_msi(&mut machine, place(), MSI, MESSAGE, 4);
    assert_eq!(words(&mut machine), [0x01ab_0005, 0xfee0_1000, 1, 0x4051, 0]);
}

#[test]
fn an_address_of_32_bits_has_its_data_behind_the_lower_half() {
    let mut machine = machine(0);
    enable_msi(&mut machine, place(), MSI, MESSAGE, 1);
    assert_eq!(words(&mut machine), [0x0001_0005, 0xfee0_1000, 0x4051, 0, 0]);
}

#[test]
fn nothing_is_sent_while_the_table_is_filled() {
    let mut machine = machine(0);
    let mut is_filled = false;
    enable_msix(&mut machine, place(), MSIX, || is_filled = true);
    assert!(is_filled);
    assert_eq!(machine.read(place(), MSIX), 0x8010_0011);
    let written = machine.written(place(), MSIX + 2);
    assert_eq!(written, [0xc010, 0x8010], "enabled with all masked first");
}

#[test]
fn both_are_disabled_and_a_function_that_has_vanished_is_left_alone() {
    let mut machine = machine(0x0080);
    enable_msi(&mut machine, place(), MSI, MESSAGE, 1);
    enable_msix(&mut machine, place(), MSIX, || {});
    disable(&mut machine, place(), Some(MSI), Some(MSIX));
    assert_eq!(machine.read(place(), MSI) >> 16, 0x0080);
    assert_eq!(machine.read(place(), MSIX) >> 16, 0x0010);
    let gone: Bdf = "02:00.0".parse().unwrap();
    disable(&mut machine, gone, Some(MSI), Some(MSIX));
    assert!(machine.written(gone, MSI + 2).is_empty());
}
