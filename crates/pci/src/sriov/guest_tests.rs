// SPDX-License-Identifier: MIT OR Apache-2.0
//! The capability as guests read and write it.

use std::vec::Vec;

use proptest::prelude::*;

use super::{CONTROL, GuestCapability, MOST, NUMBER};
use crate::sriov::VirtualFunctions;
use crate::testing::{Chip, Machine};

fn capability() -> GuestCapability {
    GuestCapability::new(4, 0x10ca).unwrap()
}

#[test]
fn a_guests_kernel_reads_what_a_hosts_would() {
    let mut chip = Chip::new(0x8086, 0x10c9, 0x0200, 0);
    chip.extended.extend((0..16).map(|word| (0x100 + word * 4, capability().read(word * 4))));
    let place = "00:01.0".parse().unwrap();
    let read = VirtualFunctions::read(&mut Machine::with([("00:01.0", chip)]), place).unwrap().unwrap();
    assert_eq!((read.total, read.device), (4, 0x10ca));
    let places = read.places(place, &[]).unwrap();
    assert_eq!((*places.start(), *places.end()), ("00:01.1".parse().unwrap(), "00:01.4".parse().unwrap()));
}

#[test]
fn they_are_wanted_once_they_are_enabled() {
    let mut capability = capability();
    capability.write(NUMBER, &3u16.to_le_bytes());
    assert_eq!((capability.wanted(), capability.read(NUMBER)), (0, 3));
    capability.write(CONTROL, &0xffffu16.to_le_bytes());
    assert_eq!((capability.wanted(), capability.read(CONTROL)), (3, 0b1001));
    capability.write(NUMBER, &2u16.to_le_bytes());
    assert_eq!(capability.wanted(), 3, "not while they are enabled");
    capability.write(CONTROL, &[0]);
    capability.write(NUMBER, &2u16.to_le_bytes());
    capability.write(CONTROL, &[1]);
    assert_eq!(capability.wanted(), 2);
    capability.reset();
    assert_eq!(capability, self::capability());
}

#[test]
fn more_than_are_approved_are_not_wanted() {
    let mut capability = capability();
    for number in [5u16, 0x100, u16::MAX] {
        capability.write(NUMBER, &number.to_le_bytes());
        capability.write(CONTROL, &[1]);
        assert_eq!((capability.wanted(), capability.read(NUMBER)), (0, 0), "{number}");
        capability.write(CONTROL, &[0]);
    }
    assert!([0, MOST + 1, u8::MAX].into_iter().all(|total| GuestCapability::new(total, 0).is_none()));
    assert!(capability.restored(0, 5).is_none() && capability.restored(1 << 1, 0).is_none());
}

proptest! {
    #[test]
    fn no_write_changes_anything_but_control_and_number(
        total in 1..=MOST,
        writes in prop::collection::vec((prop_oneof![0u16..0x48, any::<u16>()],
            prop::collection::vec(any::<u8>(), 1..=8)), 0..24),
    ) {
        let before = GuestCapability::new(total, 0x10ca).unwrap();
        let mut now = before;
        for (offset, bytes) in writes {
            now.write(offset, &bytes);
            prop_assert!(now.wanted() <= total);
            let kept = |word: &u16| ![CONTROL, NUMBER].contains(&(word * 4));
            let words = |capability: GuestCapability| -> Vec<u32> {
                (0..0x400).filter(kept).map(|word| capability.read(word * 4)).collect()
            };
            prop_assert_eq!(words(now), words(before));
            let (control, number) = now.saved();
            prop_assert_eq!(before.restored(control, number), Some(now));
        }
    }
}
