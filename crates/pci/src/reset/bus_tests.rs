// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resets of a bus: what they take, what the functions have afterwards, and bridges that lie.

use std::vec::Vec;

use proptest::prelude::*;

use super::{BusReset, NoBusReset};
use crate::reset::ResetError;
use crate::testing::{Chip, Machine};
use crate::{Bdf, Filter, Function, Scan, Step};

const BRIDGE: &str = "00:01.0";
const DEVICE: &str = "01:00.0";
const SIBLING: &str = "01:00.1";

fn place(text: &str) -> Bdf {
    text.parse().unwrap()
}

fn functions(machine: &mut Machine) -> Vec<Function> {
    let mut found = Vec::new();
    let mut scan = Scan::new(&Filter::All, 0, [0]);
    while scan.step(machine, &mut |function| found.push(function)) == Step::More {}
    found
}

/// Returns a device with two functions behind a bridge.
fn pair() -> Machine {
    let device = || {
        let mut chip = Chip::new(0x1234, 0x11e8, 0x00ff, 0x80).with_bar(0, 0xfe00_0000);
        chip.words[0x3c / 4] = 0x0b;
        chip
    };
    Machine::with([(BRIDGE, Chip::bridge(1)), (DEVICE, device()), (SIBLING, device())])
}

#[test]
fn it_takes_all_functions_behind_the_bridge_and_puts_them_back() {
    let mut machine = pair();
    machine.chips.insert(place("00:02.0"), Chip::new(0x8086, 0x10d3, 0x0200, 0));
    let found = functions(&mut machine);
    let bus = BusReset::of(&found, place(DEVICE)).unwrap();
    assert_eq!(bus.functions().collect::<Vec<_>>(), [place(DEVICE), place(SIBLING)]);
    bus.reset(&mut machine, place(DEVICE)).unwrap();
    assert_eq!(machine.written(place(BRIDGE), 0x3e), [1 << 6, 0], "asserted, and not any more");
    for behind in [DEVICE, SIBLING].map(place) {
        assert_eq!((machine.chips[&behind].resets, machine.written(behind, 0x10)), (1, [0xfe00_0000].into()));
        assert_eq!(machine.written(behind, 0x04), [1 << 10, 1 << 10], "quiet before and after");
    }
    assert_eq!(machine.chips[&place("00:02.0")].resets, 0);
    assert!(machine.pauses >= 102_000, "{}: held, and left alone for a tenth of a second", machine.pauses);
}

#[test]
fn the_link_is_waited_for_where_the_bridge_reports_it() {
    let mut machine = pair();
    let bridge = Chip::bridge(1).with_capabilities(0x40, &[(0x40, 0x10, 0)]);
    machine.chips.insert(place(BRIDGE), bridge);
    machine.chips.get_mut(&place(BRIDGE)).unwrap().words[0x4c / 4] = 1 << 20;
    let found = functions(&mut machine);
    BusReset::of(&found, place(DEVICE)).unwrap().reset(&mut machine, place(DEVICE)).unwrap();
    assert!(machine.pauses >= 1_102_000, "{}: it never comes up, and is not waited for for ever", machine.pauses);
}

#[test]
fn a_function_that_does_not_come_back_is_named_and_its_neighbour_is_left_out() {
    let mut machine = pair();
    machine.chips.get_mut(&place(SIBLING)).unwrap().not_ready_after_reset = u32::MAX;
    let found = functions(&mut machine);
    let bus = BusReset::of(&found, place(DEVICE)).unwrap();
    assert_eq!(bus.reset(&mut machine, place(DEVICE)), Ok(()));
    assert!(machine.written(place(SIBLING), 0x10).is_empty());
    assert_eq!(bus.reset(&mut machine, place(SIBLING)), Err(ResetError::NotReady));
    machine.chips.remove(&place(DEVICE));
    assert_eq!(bus.reset(&mut machine, place(DEVICE)), Err(ResetError::Gone));
}

#[test]
fn a_bus_without_one_bridge_of_its_own_is_refused() {
    let refusal = |machine: &mut Machine, device| BusReset::of(&functions(machine), place(device)).unwrap_err();
    assert_eq!(refusal(&mut pair(), BRIDGE), NoBusReset::RootBus);
    let mut machine = pair();
    machine.chips.insert(place("01:05.0"), Chip::bridge(0));
    assert_eq!(refusal(&mut machine, DEVICE), NoBusReset::Behind(place("01:05.0")));
    let mut found = functions(&mut pair());
    let twin = Function { place: place("00:03.0"), ..found[0].clone() };
    found.push(twin);
    let refused = NoBusReset::Ambiguous(place(BRIDGE), place("00:03.0"));
    assert_eq!(BusReset::of(&found, place(DEVICE)), Err(refused));
}

proptest! {
    /// For any registers of the bridges, a reset includes no bridge, and the function that it is for.
    #[test]
    fn no_bridge_is_reset(ranges in prop::collection::vec((0u8..4, 0u8..5, 0u8..5), 1..6), bus in 0u8..5) {
        let mut machine = Machine::default();
        for (number, (on, secondary, subordinate)) in ranges.into_iter().enumerate() {
            let mut chip = Chip::bridge(secondary);
            chip.words[6] = u32::from(subordinate) << 16 | u32::from(secondary) << 8;
            machine.chips.insert(Bdf::new(0, on, number as u8, 0).unwrap(), chip);
        }
        let device = Bdf::new(0, bus, 31, 0).unwrap();
        machine.chips.insert(device, Chip::new(1, 2, 0x0200, 0));
        let found: Vec<Function> = functions(&mut machine);
        if let Ok(reset) = BusReset::of(&found, device) && found.iter().any(|function| function.place == device) {
            prop_assert!(reset.functions().any(|place| place == device));
            for place in reset.functions() {
                prop_assert!(machine.chips[&place].words[3] >> 16 & 0x7f == 0);
            }
            machine.writes.clear();
            let _ = reset.reset(&mut machine, device);
            let bridges: Vec<Bdf> = machine.writes.iter().filter(|(_, at, _)| *at == 0x3e).map(|(at, ..)| *at).collect();
            prop_assert!(bridges.len() == 2 && bridges[0] == bridges[1]);
        }
    }
}
