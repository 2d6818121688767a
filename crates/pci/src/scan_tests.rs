// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::bar::{Bar, Space};
use crate::capability::Capability;
use crate::testing::{Chip, Machine};

fn scan(machine: &mut Machine, filter: &str) -> (Vec<Function>, Cost) {
    let mut scan = Scan::new(&filter.parse().unwrap(), 0, [0]);
    let mut found = Vec::new();
    for _ in 0..=256 * 32 * 8 + 2 * MAX_ASKS {
        if scan.step(machine, &mut |function| found.push(function)) == Step::Done {
            return (found, scan.cost());
        }
    }
    panic!("the walk does not end");
}

fn places(functions: &[Function]) -> Vec<std::string::String> {
    functions.iter().map(|function| std::format!("{}", function.place)).collect()
}

fn network() -> Chip {
    Chip::new(0x8086, 0x100e, 0x0200, 0)
        .with_bar(0, 0xfeb8_0000)
        .with_bar(1, 0xc041)
        .with_bar(2, 0x0000_000c)
        .with_bar(3, 0x0000_0080)
        .with_capabilities(0xdd, &[(0xdc, 0x01, 0xe4), (0xe4, 0x05, 0)])
}

fn machine() -> Machine {
    Machine::with([
        ("00:00.0", Chip::new(0x8086, 0x29c0, 0x0600, 0)),
        ("00:02.0", Chip::bridge(1)),
        ("00:1f.0", Chip::new(0x8086, 0x2918, 0x0601, 0x80)),
        ("00:1f.3", Chip::new(0x8086, 0x2930, 0x0c05, 0)),
        ("01:00.0", network()),
        ("02:00.0", network()),
    ])
}

#[test]
fn all_functions_behind_bridges_are_found_and_no_others() {
    let (found, _) = scan(&mut machine(), "all");
    assert_eq!(places(&found), ["0000:00:00.0", "0000:00:02.0", "0000:00:1f.0", "0000:00:1f.3", "0000:01:00.0"]);
}

/// The length of a range is found by writing ones to it, which takes it away from its driver.
#[test]
fn a_scan_writes_no_register() {
    let mut machine = machine();
    let (found, _) = scan(&mut machine, "all");
    assert!(!found.is_empty() && machine.writes.is_empty(), "{:?}", machine.writes);
}

#[test]
fn ranges_are_where_the_firmware_has_placed_them() {
    let (found, _) = scan(&mut machine(), "all");
    let Kind::Endpoint { bars } = &found[4].kind else { panic!() };
    let expected = [
        Bar { index: 0, space: Space::Memory32 { is_prefetchable: false }, address: 0xfeb8_0000 },
        Bar { index: 1, space: Space::Ports, address: 0xc040 },
        Bar { index: 2, space: Space::Memory64 { is_prefetchable: true }, address: 0x80_0000_0000 },
    ];
    assert_eq!(bars[..], expected);
}

#[test]
fn a_range_of_64_bits_in_the_last_register_is_a_problem() {
    let half = network().with_bar(5, 0xfe00_0004);
    let (found, _) = scan(&mut Machine::with([("00:01.0", half)]), "all");
    assert_eq!(found[0].problems.iter().collect::<Vec<_>>(), [Problem::HalfRange { index: 5 }]);
}

#[test]
fn capabilities_are_listed() {
    let (found, _) = scan(&mut machine(), "allow:class:02");
    let expected = [
        Capability { id: Capability::POWER_MANAGEMENT, register: 0xdc, flags: 0 },
        Capability { id: Capability::MSI, register: 0xe4, flags: 0 },
    ];
    assert_eq!((places(&found), &found[0].capabilities[..]), (std::vec!["0000:01:00.0".into()], &expected[..]));
}

#[test]
fn a_place_that_is_named_is_all_that_is_touched() {
    let mut machine = machine();
    let (found, cost) = scan(&mut machine, "allow:01:00.0,00:05.0");
    assert_eq!(places(&found), ["0000:01:00.0"]);
    assert_eq!(cost.accesses as usize, machine.log.len());
    let touched: std::collections::BTreeSet<_> = machine.log.iter().map(|(place, _)| std::format!("{place}")).collect();
    assert_eq!(touched.into_iter().collect::<Vec<_>>(), ["0000:00:05.0", "0000:01:00.0"]);
}

#[test]
fn every_access_is_counted_and_each_function_has_its_share() {
    let mut machine = machine();
    let (found, cost) = scan(&mut machine, "all");
    assert_eq!((cost.accesses as usize, cost.ticks as usize), (machine.log.len(), machine.log.len() * 10));
    let shares: u32 = found.iter().map(|function| function.cost.accesses).sum();
    let empty_slots = 2 * 32 - 4 + 6;
    assert_eq!(shares + empty_slots, cost.accesses);
}

#[test]
fn capability_lists_that_loop_or_stray_end_with_a_problem() {
    let looping = network().with_capabilities(0x40, &[(0x40, 5, 0x50), (0x50, 9, 0x40)]);
    let straying = network().with_capabilities(0x40, &[(0x40, 5, 0x10)]);
    let (found, _) = scan(&mut Machine::with([("00:01.0", looping), ("00:02.0", straying)]), "all");
    let problems: Vec<_> = found.iter().flat_map(|function| function.problems.iter()).collect();
    let expected = [Problem::CapabilityLoop { register: 0x40 }, Problem::StrayCapability { register: 0x10 }];
    assert_eq!((problems, found[0].capabilities.len(), found[1].capabilities.len()), (expected.to_vec(), 2, 1));
}

#[test]
fn bridges_that_lead_back_are_named_and_not_followed() {
    let machine = [("00:01.0", Chip::bridge(1)), ("01:00.0", Chip::bridge(0)), ("01:01.0", Chip::bridge(1))];
    let (found, _) = scan(&mut Machine::with(machine), "all");
    let problems: Vec<_> = found.iter().flat_map(|function| function.problems.iter()).collect();
    assert_eq!(problems, [Problem::BridgeLoop { bus: 0 }, Problem::BridgeLoop { bus: 1 }]);
}

#[test]
fn a_function_that_is_not_ready_is_asked_a_bounded_number_of_times() {
    let late = Chip { not_ready: 20, ..network() };
    let never = Chip { not_ready: u32::MAX, ..network() };
    let mut machine = Machine::with([("00:01.0", late), ("00:02.0", never)]);
    let (found, _) = scan(&mut machine, "all");
    assert_eq!(found[0].problems.iter().count(), 0);
    assert_eq!(found[1].problems.iter().collect::<Vec<_>>(), [Problem::NotReady]);
    assert_eq!(machine.pauses, 20 + 999);
}

#[test]
fn waiting_for_a_function_is_its_own_cost_and_no_step_waits_twice() {
    let late = Chip { not_ready: 20, ..network() };
    let mut machine = Machine::with([("00:01.0", late), ("00:02.0", network())]);
    let mut scan = Scan::new(&Filter::All, 0, [0]);
    let mut found = Vec::new();
    while {
        let before = machine.pauses;
        let step = scan.step(&mut machine, &mut |function: Function| found.push(function));
        assert!(machine.pauses <= before + 1);
        step == Step::More
    } {}
    assert_eq!(found[0].cost.accesses, found[1].cost.accesses + 20);
    assert_eq!(scan.cost().accesses as usize, machine.log.len());
}

#[test]
fn behind_a_port_only_one_device_is_searched_for() {
    const ROOT_PORT: u32 = 4 << 20;
    let port = || {
        let mut port = Chip::bridge(1).with_capabilities(0x40, &[(0x40, Capability::EXPRESS, 0)]);
        port.words[0x10] |= ROOT_PORT;
        port
    };
    let several = Chip::new(0x8086, 0x100e, 0x0200, 0x80);
    let functions = [("00:01.0", port()), ("01:00.0", several), ("01:00.5", network()), ("01:01.0", network())];
    for (filter, expected) in [("all", 3), ("allow:class:02", 2)] {
        let mut machine = Machine::with(functions.clone());
        let (found, _) = scan(&mut machine, filter);
        assert_eq!(found.len(), expected, "{filter}");
        assert!(machine.log.iter().all(|(place, _)| place.bus == 0 || place.device() == 0), "{filter}");
    }
}

#[test]
fn of_the_places_named_only_those_of_the_segment_are_touched() {
    let mut machine = machine();
    let mut scan = Scan::new(&"allow:0001:00:00.0,00:1f.3".parse().unwrap(), 0, [0]);
    while scan.step(&mut machine, &mut |_| ()) == Step::More {}
    assert!(machine.log.iter().all(|(place, _)| place.segment == 0 && place.device() == 0x1f));
}

#[test]
fn a_function_that_vanishes_costs_no_more_than_itself() {
    for accesses in 1..40 {
        let leaving = Chip { vanishes_after: accesses, ..network() };
        let (found, _) = scan(&mut Machine::with([("00:01.0", leaving), ("00:02.0", network())]), "all");
        assert_eq!(found.last().map(|function| function.problems.iter().count()), Some(0), "the other is whole");
    }
}

proptest! {
    #[test]
    fn the_walk_ends_and_its_cost_is_bounded_for_any_registers(
        chips in prop::collection::btree_map((0..3u8, 0..32u8, 0..8u8), prop::array::uniform32(any::<u32>()), 0..12),
    ) {
        let mut machine = Machine::default();
        for ((bus, device, function), low) in chips {
            let mut chip = Chip::new(0, 0, 0, 0);
            chip.words[..32].copy_from_slice(&low);
            chip.words[32..].copy_from_slice(&low);
            machine.chips.insert(Bdf::new(0, bus, device, function).unwrap(), chip);
        }
        let (_, cost) = scan(&mut machine, "all");
        prop_assert!(cost.accesses <= 256 * 32 * 8 + 12 * 1100);
    }
}
