// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;

use super::super::testing::*;
use super::super::*;

#[test]
fn every_type_of_entry_is_read() {
    let description = with_entries(&[
        entry(1, 0, 0x02),
        entry(2, 0x10, 0x01),
        entry(0, 0, 0),
        entry(3, 0x20, 0x04),
        entry(4, 0x2f, 0),
        alias(0x42, 0x30, 0x30, 0x38),
        alias(0x40, 0, 0, 0),
        alias(0x43, 0x100, 0x40, 0x108),
        entry(4, 0x1ff, 0),
        [entry(0x46, 0x50, 0x80), vec![0, 0, 0, 0x80]].concat(),
        [entry(0x47, 0x60, 0), vec![0, 0, 0, 0x80]].concat(),
        entry(4, 0x67, 0),
        special(4, 0xa0, 0xd7, 1),
        special(0, 0xa1, 0, 2),
        named(0x99, 0x01, b"\\_SB.FUR0"),
        entry(2, 0x70, 0),
    ]);
    assert_eq!(faults(&description), []);
    assert!(description.units[0].covers_rest);
    let settings = [0x10, 0x2f, 0x30, 0x38, 0x1ff, 0x108, 0x50, 0xa0, 0x99, 0x70, 0x777].map(place);
    let settings = settings.map(|place| description.settings_of(place).0);
    assert_eq!(settings, [0x03, 0x06, 0x32, 0x32, 0x42, 0x42, 0x82, 0xd7, 0x03, 0x02, 0x02]);
    assert_eq!([0x30, 0x150, 0x38].map(|at| description.alias_of(place(at))), [0x38, 0x108, 0x38].map(place));
    assert_eq!([0x50, 0x67, 0x68].map(|at| description.forbids_ats(place(at))), [true, true, false]);
    assert_eq!(description.io_apic(4).unwrap().requester, 0xa0);
    assert_eq!(description.hpet(0).unwrap().requester, 0xa1);
    let io_apic = description.settings_of(place(0xa0));
    assert!(io_apic.passes_init() && io_apic.passes_external_interrupt() && io_apic.passes_nmi());
    assert!(io_apic.passes_lint0() && io_apic.passes_lint1());
    assert_eq!((io_apic.system_management(), Settings(0x30).system_management()), (1, 3));
}

#[test]
fn what_two_entries_want_for_a_function_is_added_up() {
    let description = with_entries(&[
        entry(3, 8, 0),
        entry(4, 0xfffe, 0),
        special(0, 0xa0, 0, 2),
        special(0x21, 0xa0, 0xd7, 1),
        special(0x22, 0xa0, 0xd7, 1),
    ]);
    assert_eq!(faults(&description), []);
    assert_eq!(description.settings_of(place(0xa0)), Settings(0xd7));
    assert_eq!(description.scopes.len(), 3);
}

#[test]
fn ranges_without_beginning_or_end_are_ignored() {
    let bad = |requester| TableFault::BadFunctions { requester };
    let description =
        with_entries(&[entry(4, 9, 0), entry(3, 0x10, 0), entry(3, 0x20, 0), entry(4, 0x1f, 0), entry(3, 0x30, 0)]);
    let expected = [(0, bad(9)), (4, bad(0x10)), (12, bad(0x1f)), (16, bad(0x30))];
    assert_eq!(faults(&description), expected.map(|(at, fault)| (ENTRIES + at, fault)));
    assert!(description.scopes.is_empty());
}

#[test]
fn entries_cut_short_end_the_walk_of_their_block_only() {
    let cut = [
        vec![2],
        vec![2, 0, 0],
        vec![0x42, 0, 0, 0, 0, 0, 0],
        vec![0x80; 15],
        vec![0xc0; 31],
        vec![0xf0; 21],
        named(0, 0, b"name")[..25].to_vec(),
    ];
    for cut in cut {
        let first = ivhd(0x11, 2, REGISTERS, &[entry(2, 8, 0), cut]);
        let second = ivhd(0x11, 3, REGISTERS + 0x4000, &[entry(2, 0x10, 0)]);
        let description = read_ivrs(ivrs(&[first, second]));
        assert_eq!(faults(&description), [(ENTRIES + 4, TableFault::Truncated)]);
        assert_eq!((description.unit_of(place(8)), description.unit_of(place(0x10))), (Some(0), Some(1)));
    }
}

#[test]
fn a_function_is_behind_one_unit_and_has_one_alias() {
    let one =
        ivhd(0x11, 2, REGISTERS, &[entry(3, 8, 0), entry(4, 0xff, 0), alias(0x42, 0x10, 0, 0x11), entry(1, 0, 0)]);
    let two = ivhd(
        0x11,
        3,
        REGISTERS + 0x4000,
        &[entry(2, 0x10, 0), entry(1, 0, 0), alias(0x42, 0x200, 0, 0x208), alias(0x42, 0x200, 0, 0x209)],
    );
    let at = 48 + one.len() as u32 + 40;
    let description = read_ivrs(ivrs(&[one, two]));
    let expected = [
        (at, TableFault::TwoUnits { requester: 0x10 }),
        (at + 4, TableFault::TwoRests),
        (at + 16, TableFault::TwoAliases { requester: 0x200 }),
    ];
    assert_eq!(faults(&description), expected);
    let units = [0x10, 0x200, 0x300].map(|at| description.unit_of(place(at)));
    assert_eq!(units, [Some(0), Some(1), Some(0)]);
    assert_eq!([0x10, 0x200].map(|at| description.alias_of(place(at))), [0x11, 0x208].map(place));
}

#[test]
fn a_range_with_the_function_counts_before_one_in_its_name() {
    let one = ivhd(0x11, 2, REGISTERS, &[alias(0x42, 0x10, 0, 0x200)]);
    let two = ivhd(0x11, 3, REGISTERS + 0x4000, &[entry(2, 0x200, 0)]);
    let description = read_ivrs(ivrs(&[one, two]));
    assert_eq!((description.unit_of(place(0x10)), description.unit_of(place(0x200))), (Some(0), Some(1)));
}

#[test]
fn an_interrupter_has_one_requester() {
    let entries = [special(1, 0xa0, 0, 1), special(1, 0xa0, 0, 1), special(1, 0xa1, 0, 1), special(1, 0xa1, 0, 2)];
    let description = with_entries(&entries);
    assert_eq!(faults(&description), [(ENTRIES + 16, TableFault::RepeatedInterrupter { id: 1 })]);
    assert_eq!(description.io_apic(1).unwrap().requester, 0xa0);
    assert_eq!(description.hpet(1).unwrap().requester, 0xa1);
}
