// SPDX-License-Identifier: MIT OR Apache-2.0
//! The SR-IOV capability on the guest's bus, and the virtual functions behind it.

use std::vec;

use super::*;
use crate::devices::pci::assigned::VirtualFunctions;

const CAPABILITY: u64 = 0x100;
const CONTROL: u64 = CAPABILITY + 8;
const NUMBER: u64 = CAPABILITY + 0x10;
/// From a function's registers to those of the next one of its device.
const NEXT: u64 = 0x1000;

fn lab(approved: u8) -> Lab {
    let mut lab = Lab::bare();
    let mut physical = FakePhysical::new(0, &lab.space);
    let probed = Description::probe(name(), &mut physical, None).expect("it is good");
    physical.is_sealed = true;
    lab.attach(Description { virtual_functions: approved, ..probed }, physical);
    lab
}

fn enable(lab: &mut Lab, number: u32) {
    lab.set_config(0, NUMBER, number);
    lab.set_config(0, CONTROL, 0b1001);
}

#[test]
fn without_approval_there_is_no_capability() {
    let mut lab = lab(0);
    enable(&mut lab, 1);
    assert_eq!((lab.config(0, CAPABILITY), lab.config(0, NEXT)), (u32::MAX, u32::MAX));
    assert_eq!(lab.physical(0, |physical| physical.virtual_wanted), 0);
}

#[test]
fn virtual_functions_are_there_while_they_are_enabled() {
    let mut lab = lab(3);
    assert_eq!(lab.config(0, CAPABILITY), 0x0001_0010);
    assert_eq!((lab.config(0, CAPABILITY + 0x0c), lab.config(0, CAPABILITY + 0x18)), (0x0003_0003, 0x10ca_0000));
    assert_eq!(lab.config(0, NEXT), u32::MAX);
    lab.set_config(0, NEXT + 4, u32::MAX);
    enable(&mut lab, 2);
    assert_eq!(lab.physical(0, |physical| physical.virtual_wanted), 2);
    for function in 1..=2 {
        let at = function * NEXT;
        let class = lab.config(0, 8);
        assert_eq!([0, 4, 8, 0xc, 0x10, 0x34].map(|word| lab.config(0, at + word)), [u32::MAX, 0, class, 0, 0, 0]);
        lab.set_config(0, at + 0x10, u32::MAX);
        assert_eq!(lab.config(0, at + 0x10), 0, "it has no ranges");
    }
    assert_eq!(lab.config(0, 3 * NEXT), u32::MAX);
    lab.set_config(0, CONTROL, 0);
    assert_eq!((lab.config(0, NEXT), lab.physical(0, |physical| physical.virtual_wanted)), (u32::MAX, 0));
}

#[test]
fn more_than_are_approved_are_not_asked_for() {
    let mut lab = lab(3);
    for number in [4, 0x100, 0xffff] {
        enable(&mut lab, number);
        assert_eq!(lab.physical(0, |physical| physical.virtual_wanted), 0);
        lab.set_config(0, CONTROL, 0);
    }
}

#[test]
fn a_reset_and_the_end_of_the_function_take_them_back() {
    let ends: [fn(&mut Lab); 3] = [
        |lab| lab.set_config(0, DEVICE_CONTROL, RESET),
        |lab| lab.with(0, |function, outputs| function.vanish(outputs)),
        |lab| lab.with(0, |function, _| function.reset()),
    ];
    for end in ends {
        let mut lab = lab(3);
        enable(&mut lab, 3);
        end(&mut lab);
        assert_eq!(lab.physical(0, |physical| physical.virtual_wanted), 0);
        assert_eq!(lab.config(0, NEXT), u32::MAX);
    }
}

#[test]
fn the_next_image_goes_on_with_them() {
    let mut old = lab(3);
    enable(&mut old, 2);
    let saved = |lab: &mut Lab| {
        lab.with(0, |function, _| {
            let mut bytes = vec![0; function.state_bytes()];
            let used = function.save(&mut bytes).expect("there is room");
            bytes.truncate(used);
            bytes
        })
    };
    let state = saved(&mut old);
    let mut next = lab(3);
    next.physical(0, |physical| physical.virtual_functions = VirtualFunctions::default());
    next.with(0, |function, _| function.restore(1, &state)).expect("it is its own state");
    assert_eq!(next.physical(0, |physical| (physical.virtual_wanted, physical.virtual_functions.device)), (2, 0x10ca));
    assert_eq!(saved(&mut next), state);
    assert_eq!((next.config(0, CAPABILITY + 0x18), next.config(0, 2 * NEXT + 4)), (0x10ca_0000, 0));
    let mut other = lab(1);
    assert!(other.with(0, |function, _| function.restore(1, &state)).is_err(), "fewer are approved");
    assert!(lab(0).with(0, |function, _| function.restore(1, &state)).is_err(), "none is");
}

proptest! {
    #[test]
    fn whatever_the_guest_writes_no_more_are_wanted_than_are_approved(
        approved in 1u8..=7,
        writes in prop::collection::vec((prop_oneof![CAPABILITY..CAPABILITY + 0x48, 0u64..8 * NEXT], any::<u32>()), 0..40),
    ) {
        let mut lab = lab(approved);
        for (register, value) in writes {
            // A reset is another test's: the function does not come back from it here.
            if !(EXPRESS..EXPRESS + 0x3c).contains(&(register & !3)) {
                lab.set_config(0, register & !3, value);
            }
            let wanted = lab.physical(0, |physical| physical.virtual_wanted);
            prop_assert!(wanted <= approved);
            let there = (1..8).filter(|function| lab.config(0, function * NEXT + 4) == 0).count();
            prop_assert_eq!(there, usize::from(wanted));
        }
    }
}
