// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::{String, ToString};

use proptest::prelude::*;

use super::*;
use crate::acs::Acs;
use crate::testing::{Chip, Machine};
use crate::{Filter, Function, Scan, Step};

#[path = "groups_tests/model.rs"]
mod model;

const ROOTS: [(u16, u8); 1] = [(0, 0)];

fn place(text: &str) -> Bdf {
    text.parse().unwrap()
}

fn member(text: &str, role: Role, isolates: bool) -> Member {
    let acs = isolates.then_some(Acs { register: 0x100, services: 0x1d, control: 0x1d });
    Member { place: place(text), role, is_multifunction: false, acs }
}

fn port(text: &str, kind: PortKind, secondary: u8, isolates: bool) -> Member {
    member(text, Role::Port { secondary, kind }, isolates)
}

fn device(text: &str) -> Member {
    member(text, Role::Device, false)
}

fn several(member: Member) -> Member {
    Member { is_multifunction: true, ..member }
}

/// Returns the groups, each as its devices without their segment.
fn groups(members: &[Member]) -> Vec<String> {
    let groups = Groups::new(members, &ROOTS);
    let text = |range: &Range<usize>| {
        let devices = groups.devices[range.clone()].iter().map(|place| place.to_string()[5..].to_string());
        devices.collect::<Vec<_>>().join(" ")
    };
    groups.groups.iter().map(text).collect()
}

#[test]
fn devices_behind_isolating_ports_are_alone() {
    let members = [
        member("00:00.0", Role::HostBridge, false),
        port("00:02.0", PortKind::Root, 1, true),
        port("00:03.0", PortKind::Root, 2, true),
        device("01:00.0"),
        device("02:00.0"),
        device("00:1e.0"),
    ];
    assert_eq!(groups(&members), ["00:1e.0", "01:00.0", "02:00.0"]);
}

#[test]
fn functions_of_a_device_are_together_unless_each_isolates() {
    let two = |first, second| {
        let port = port("00:02.0", PortKind::Root, 1, true);
        groups(&[
            port,
            several(member("01:00.0", Role::Device, first)),
            several(member("01:00.1", Role::Device, second)),
        ])
    };
    assert_eq!(two(true, true), ["01:00.0", "01:00.1"]);
    for (first, second) in [(true, false), (false, true), (false, false)] {
        assert_eq!(two(first, second), ["01:00.0 01:00.1"]);
    }
    let virtual_functions = [port("00:02.0", PortKind::Root, 1, true), device("01:00.0"), device("01:00.1")];
    assert_eq!(groups(&virtual_functions), ["01:00.0", "01:00.1"]);
}

#[test]
fn a_dummy_host_bridge_beside_ports_counts_for_nothing() {
    let members = [
        several(member("00:01.0", Role::HostBridge, false)),
        several(port("00:01.1", PortKind::Root, 1, true)),
        several(port("00:01.2", PortKind::Root, 2, true)),
        device("01:00.0"),
        device("02:00.0"),
    ];
    assert_eq!(groups(&members), ["01:00.0", "02:00.0"]);
}

#[test]
fn what_is_behind_ports_of_one_device_is_together_unless_each_isolates() {
    let with = |first, second| {
        groups(&[
            several(port("00:1c.0", PortKind::Root, 1, first)),
            several(port("00:1c.1", PortKind::Root, 2, second)),
            device("01:00.0"),
            device("02:00.0"),
        ])
    };
    assert_eq!(with(true, true), ["01:00.0", "02:00.0"]);
    assert_eq!(with(true, false), ["01:00.0 02:00.0"]);
}

#[test]
fn a_switch_isolates_only_if_each_of_its_ports_does() {
    let with = |first, second| {
        groups(&[
            port("00:02.0", PortKind::Root, 1, true),
            port("01:00.0", PortKind::Upstream, 2, false),
            port("02:00.0", PortKind::Downstream, 3, first),
            port("02:01.0", PortKind::Downstream, 4, second),
            device("03:00.0"),
            device("04:00.0"),
        ])
    };
    assert_eq!(with(true, true), ["03:00.0", "04:00.0"]);
    assert_eq!(with(false, true), ["03:00.0 04:00.0"]);
    assert_eq!(with(true, false), ["03:00.0 04:00.0"]);
}

#[test]
fn a_root_port_that_does_not_isolate_shares_what_is_below() {
    let members = [
        port("00:02.0", PortKind::Root, 1, false),
        port("01:00.0", PortKind::Upstream, 2, false),
        port("02:00.0", PortKind::Downstream, 3, true),
        port("02:01.0", PortKind::Downstream, 4, true),
        device("03:00.0"),
        device("04:00.0"),
        port("00:03.0", PortKind::Root, 5, false),
        device("05:00.0"),
    ];
    assert_eq!(groups(&members), ["03:00.0 04:00.0", "05:00.0"]);
}

#[test]
fn conventional_devices_behind_a_bridge_are_together() {
    let members = [
        port("00:02.0", PortKind::Root, 1, true),
        member("01:00.0", Role::Bridge { secondary: 2 }, false),
        device("02:00.0"),
        member("02:01.0", Role::Bridge { secondary: 3 }, false),
        device("03:00.0"),
        device("00:05.0"),
    ];
    assert_eq!(groups(&members), ["00:05.0", "02:00.0 03:00.0"]);
}

#[test]
fn a_device_behind_unknown_bridges_is_in_no_group() {
    let detached = [device("01:00.0"), device("00:04.0"), member("05:00.0", Role::Bridge { secondary: 5 }, false)];
    let groups = Groups::new(&[&detached[..], &[device("05:01.0")]].concat(), &ROOTS);
    assert_eq!((groups.of(place("00:04.0")), groups.number_of(place("00:04.0"))), (&[place("00:04.0")][..], Some(0)));
    for text in ["01:00.0", "05:01.0"] {
        assert_eq!(groups.of(place(text)), []);
        assert_eq!(groups.check(place(text), &1, |_| None), Err(Refusal::Detached { place: place(text) }));
    }
}

#[test]
fn a_group_has_one_owner() {
    let members = [several(device("00:1f.2")), several(device("00:1f.3")), port("00:02.0", PortKind::Root, 1, true)];
    let groups = Groups::new(&members, &ROOTS);
    let check = |text: &str, owner: Option<&'static str>| {
        let owner_of = |other: Bdf| owner.filter(|_| other == place("00:1f.3"));
        groups.check(place(text), &"web", owner_of).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(check("00:1f.2", None), Ok(()));
    assert_eq!(check("00:1f.2", Some("web")), Ok(()));
    let expected =
        "0000:00:1f.2 is not isolated from 0000:00:1f.3 (mail); assign all of an isolation group to one guest";
    assert_eq!(check("00:1f.2", Some("mail")), Err(expected.to_string()));
    assert_eq!(check("00:1f.3", Some("mail")), Ok(()), "the owner of the function itself is the caller's matter");
    assert!(check("00:02.0", None).unwrap_err().contains("is a bridge"));
    assert!(check("00:09.0", None).unwrap_err().contains("there is no function"));
}

#[test]
fn a_refusal_names_the_first_of_many() {
    let members: Vec<Member> = (0..8).map(|number| several(device(&std::format!("00:1f.{number}")))).collect();
    let refusal = Groups::new(&members, &ROOTS).check(place("00:1f.0"), &"web", |_| Some("mail")).unwrap_err();
    let Refusal::Shared { others, count, .. } = &refusal else { panic!("{refusal}") };
    assert_eq!((others.len(), *count), (4, 7));
    assert!(refusal.to_string().contains("0000:00:1f.4 (mail), …; assign"), "{refusal}");
}

/// Members as they are read of a machine that is surveyed.
fn read(machine: &mut Machine) -> Vec<Member> {
    let mut scan = Scan::new(&Filter::All, 0, [0]);
    let mut found = Vec::new();
    while scan.step(machine, &mut |function: Function| found.push(function)) == Step::More {}
    found.iter().map(|function| Member::read(machine, function)).collect()
}

#[test]
fn members_are_read_of_the_registers() {
    let express = |chip: Chip, kind: u32| {
        let mut chip = chip.with_capabilities(0x40, &[(0x40, 0x10, 0)]);
        chip.words[0x10] |= kind << 20;
        chip
    };
    let card = |header| express(Chip::new(0x8086, 0x10d3, 0x0200, header), 0);
    let mut machine = Machine::with([
        ("00:00.0", Chip::new(0x8086, 0x29c0, 0x0600, 0)),
        ("00:02.0", express(Chip::bridge(1), 4).with_acs(0x001d)),
        ("00:03.0", Chip::bridge(2)),
        ("01:00.0", card(0x80).with_acs(0)),
        ("01:00.1", card(0)),
    ]);
    let mut members = read(&mut machine);
    let expected = [
        member("00:00.0", Role::HostBridge, false),
        Member {
            acs: Some(Acs { register: 0x100, services: 0x1d, control: 0 }),
            ..port("00:02.0", PortKind::Root, 1, false)
        },
        member("00:03.0", Role::Bridge { secondary: 2 }, false),
        several(Member { acs: Some(Acs { register: 0x100, services: 0, control: 0 }), ..device("01:00.0") }),
        several(device("01:00.1")),
    ];
    assert_eq!(members, expected);
    assert_eq!(members.iter().map(Member::decides).collect::<Vec<_>>(), [false, true, false, true, true]);
    assert_eq!(
        members.iter_mut().map(|m| m.enable_isolation(&mut machine)).collect::<Vec<_>>(),
        [false, true, false, true, false]
    );
    assert_eq!(machine.chips[&place("00:02.0")].extended[&0x104], 0x001d_001d);
}

/// Any member, on few buses, so that bridges lead to each other.
fn any_member() -> impl Strategy<Value = Member> {
    let roles = (0..7u8, 0..5u8).prop_map(|(role, secondary)| match role {
        0 => Role::HostBridge,
        1 => Role::Bridge { secondary },
        2 => Role::Port { secondary, kind: PortKind::Root },
        3 => Role::Port { secondary, kind: PortKind::Upstream },
        4 => Role::Port { secondary, kind: PortKind::Downstream },
        _ => Role::Device,
    });
    let at = (0..5u8, 0..4u8, 0..4u8).prop_map(|(bus, device, function)| Bdf::new(0, bus, device, function).unwrap());
    (at, roles, any::<bool>(), any::<bool>()).prop_map(|(place, role, is_multifunction, isolates)| Member {
        place,
        is_multifunction,
        ..member("00:00.0", role, isolates)
    })
}

proptest! {
    /// Each device is in one group or in none, for any registers of the bridges.
    #[test]
    fn groups_part_the_devices(members in prop::collection::vec(any_member(), 0..40)) {
        let by_place: BTreeMap<Bdf, Member> = members.into_iter().map(|member| (member.place, member)).collect();
        let members: Vec<Member> = by_place.into_values().collect();
        let groups = Groups::new(&members, &ROOTS);
        for member in &members {
            let of = groups.of(member.place);
            prop_assert_eq!(of.contains(&member.place), !of.is_empty());
            prop_assert_eq!(groups.number_of(member.place).is_some(), !of.is_empty());
            prop_assert!(of.iter().all(|&other| groups.of(other) == of));
            prop_assert!(member.role == Role::Device || of.is_empty());
        }
    }
}
