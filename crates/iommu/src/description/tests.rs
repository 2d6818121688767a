// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole descriptions: bounds that hold for any tables of firmware.

use std::boxed::Box;
use std::format;
use std::string::ToString;
use std::vec::Vec;

use firmware::{Fault, Signature, Tables};
use pci::Bdf;
use proptest::prelude::*;
use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr, PhysRange};

use super::testing::*;
use super::*;

/// Returns an ordinary AMD machine: a unit, a bridge to PCI, an I/O APIC, a timer, memory.
fn amd() -> Vec<u8> {
    let entries = [
        entry(3, 8, 0),
        entry(4, 0xfffe, 0),
        alias(0x43, 0x200, 0, 0x20),
        entry(4, 0x2ff, 0),
        special(0, 0xa0, 0, 2),
        special(0x21, 0xa0, 0xd7, 1),
    ];
    let with_names = [&entries[..], &[named(0x99, 0, b"\\_SB.FUR0"), entry(0, 0, 0)]].concat();
    ivrs(&[
        ivhd(0x10, 2, 0xfd20_0000, &entries),
        ivhd(0x11, 2, 0xfd20_0000, &entries),
        ivhd(0x40, 2, 0xfd20_0000, &with_names),
        ivmd(0x21, 7, (0x308, 0), 0, 0x7c00_0000, 0x10_0000),
    ])
}

/// Returns an ordinary Intel machine: one unit for graphics, one for the rest, memory of both.
fn intel() -> Vec<u8> {
    dmar(&[
        drhd(0, 0, 0xfed9_0000, &[scope(1, 0, 0, &[2, 0])]),
        drhd(1, 0, 0xfed9_1000, &[scope(3, 2, 0xf0, &[0x1f, 7]), scope(4, 0, 0, &[0x1f, 6]), scope(2, 0, 0, &[1, 0])]),
        rmrr(0x7b80_0000, 0x7fff_ffff, &[scope(1, 0, 0, &[2, 0])]),
        rmrr(0x7900_0000, 0x7901_ffff, &[scope(1, 0, 0, &[1, 0, 0, 0])]),
    ])
}

fn bridges() -> Bridges {
    Bridges::new(&[(0x08, 1, 3)])
}

fn tables(ivrs: Option<u64>, dmar: Option<u64>) -> Box<Tables> {
    let mut tables = Box::new(Tables::new());
    (tables.ivrs, tables.dmar) = (ivrs, dmar);
    tables
}

#[test]
fn ordinary_machines_are_read_without_a_problem() {
    assert_eq!(faults(&read_ivrs(amd())), []);
    let description = read_dmar(intel(), &mut bridges());
    assert_eq!(faults(&description), []);
    assert_eq!(
        [0x10, 0x08, 0x3ff, 0x400].map(|at| description.unit_of(Bdf::of_requester(0, at))),
        [0, 1, 1, 1].map(Some)
    );
}

#[test]
fn the_table_that_was_discovered_is_read() {
    let mut description = Box::new(Description::new());
    let mut read = |table, tables: &Tables| {
        let outcome = read(&Memory(table), tables, &mut bridges(), &mut description);
        outcome.map(|()| (description.kind, description.units.len()))
    };
    assert_eq!(read(amd(), &tables(Some(BASE), None)), Ok((Some(Kind::Amd), 1)));
    assert_eq!(read(intel(), &tables(None, Some(BASE))), Ok((Some(Kind::Intel), 2)));
    assert_eq!(read(amd(), &tables(Some(BASE), Some(BASE + 1))), Ok((Some(Kind::Amd), 1)));
    assert_eq!(read(amd(), &tables(None, None)), Ok((None, 0)));
    let fault = Fault::WrongSignature { address: BASE };
    assert_eq!(read(amd(), &tables(None, Some(BASE))), Err(Problem { table: Signature::DMAR, fault }));
}

#[test]
fn a_second_table_is_read_from_a_clean_slate() {
    let mut description = read_ivrs(ivrs(&[ivmd(0x20, 7, (0, 0), 0, 1, 1), ivmd(0x20, 7, (0, 0), 0, 0x1000, 0x1000)]));
    description.problems_dropped = 7;
    description.clear();
    assert_eq!(format!("{description:?}"), format!("{:?}", Description::new()));
    assert!(size_of::<Description>() <= 9 << 10, "{} bytes", size_of::<Description>());
}

#[test]
fn reserved_memory_that_is_usable_or_holds_registers_is_marked() {
    let structures = [
        ivhd(0x11, 2, 0xfd20_0000, &[]),
        ivmd(0x20, 7, (0, 0), 0, 0x1000, 0x1000),
        ivmd(0x20, 7, (0, 0), 0, 0xfd20_3000, 0x1000),
        ivmd(0x20, 7, (0, 0), 0, 0x5000, 0x1000),
        ivmd(0x20, 7, (0, 0), 0, 0x1000, 1),
    ];
    let mut description = read_ivrs(ivrs(&structures));
    let usable = PhysRange::from_start(PhysAddr(0x1800), 0x100).unwrap();
    description.check_reserved(|range| range.intersection(usable).is_some());
    let defects: Vec<_> = description.reserved.iter().map(|reserved| reserved.defect).collect();
    assert_eq!(defects, [Some(Defect::UsableMemory), Some(Defect::Registers), None, Some(Defect::Misaligned)]);
    assert_eq!(faults(&description).len(), 3);
    let text = description.problems[1].to_string();
    let expected = "ACPI table IVRS: the entry at byte 88 reserves memory that is usable memory by the memory map; \
                    devices do not get it";
    assert_eq!(text, expected);
}

#[test]
fn memory_reserved_for_an_alias_is_reserved_for_all_that_use_it() {
    let unit = ivhd(0x11, 2, 0xfd20_0000, &[alias(0x42, 0x200, 0, 0x20)]);
    let description = read_ivrs(ivrs(&[unit, ivmd(0x21, 7, (0x20, 0), 0, 0x1000, 0x1000)]));
    let count = |at| description.reserved_for(Bdf::of_requester(0, at)).count();
    assert_eq!([0x200, 0x20, 0x201].map(count), [1, 1, 0]);
}

/// Bounds that hold for any tables of firmware.
fn check_bounds(description: &Description) {
    for (index, unit) in description.units.iter().enumerate() {
        let range = unit.register_range();
        assert!(!range.is_empty() && range.start().0 != 0 && range.end().0 <= PHYSICAL_LIMIT);
        assert!(range.is_aligned(PAGE_BYTES));
        assert!(description.units[..index].iter().all(|other| other.register_range().intersection(range).is_none()));
        let rests = description.units.iter().filter(|other| other.segment == unit.segment && other.covers_rest);
        assert!(rests.count() <= 1);
    }
    assert!(description.scopes.iter().all(|scope| scope.first <= scope.last));
    assert!(description.scopes.iter().all(|scope| usize::from(scope.unit) < description.units.len()));
    assert!(description.interrupters.iter().all(|known| usize::from(known.unit) < description.units.len()));
    for reserved in description.reserved.iter().filter(|reserved| reserved.defect.is_none()) {
        assert!(!reserved.range.is_empty() && reserved.range.end().0 <= PHYSICAL_LIMIT);
        assert!(reserved.range.is_aligned(PAGE_BYTES) && reserved.first <= reserved.last);
    }
    for requester in (0..=u16::MAX).step_by(2551) {
        let place = Bdf::of_requester(0, requester);
        assert!(description.unit_of(place).is_none_or(|unit| description.units[unit].segment == 0));
        assert_eq!(description.alias_of(place).segment, 0);
        let _ = (description.settings_of(place), description.reserved_for(place).count());
    }
    assert!(description.problems.iter().all(|problem| !problem.to_string().is_empty()));
}

/// Reads a table of either vendor.
fn read_either(table: Vec<u8>) -> Box<Description> {
    if table.starts_with(b"IVRS") { read_ivrs(table) } else { read_dmar(table, &mut bridges()) }
}

#[test]
fn a_table_that_ends_anywhere_is_survived_and_what_is_lost_is_named() {
    for table in [amd(), intel()] {
        let whole = read_either(table.clone());
        for length in 48..table.len() {
            let description = read_either(seal(table[..length].to_vec()));
            check_bounds(&description);
            // At the end of a structure nothing is cut short.
            let has_lost =
                description.units.len() < whole.units.len() || description.reserved.len() < whole.reserved.len();
            assert!(!description.problems.is_empty() || has_lost, "{length}");
        }
    }
}

#[test]
fn any_single_changed_byte_is_survived() {
    for table in [amd(), intel()] {
        for at in 36..table.len() {
            for value in [0, 1, 0x40, 0x7f, 0x80, 0xf0, 0xff] {
                let mut changed = table.clone();
                changed[at] = value;
                check_bounds(&read_either(seal(changed)));
            }
        }
    }
}

/// The functions behind a unit: the first function, how many follow, whether they have an alias.
type Behind = (u16, u16, Option<u16>);

/// Returns each as an entry of AMD's.
fn entries(behind: &[Behind]) -> Vec<Vec<u8>> {
    let made = behind.iter().flat_map(|&(first, more, other)| {
        let last = entry(4, first.saturating_add(more), 0);
        match (more, other) {
            (0, None) => [entry(2, first, 0), Vec::new()],
            (0, Some(other)) => [alias(0x42, first, 0, other), Vec::new()],
            (_, None) => [entry(3, first, 0), last],
            (_, Some(other)) => [alias(0x43, first, 0, other), last],
        }
    });
    made.collect()
}

proptest! {
    #[test]
    fn functions_are_where_the_table_puts_them(
        units in prop::collection::vec(
            (any::<bool>(), prop::collection::vec((any::<u16>(), 0u16..600, any::<Option<u16>>()), 0..12)),
            1..5,
        ),
        asked in prop::collection::vec(any::<u16>(), 64),
    ) {
        let blocks = (0u16..).zip(&units).map(|(number, (has_rest, behind))| {
            let rest = if *has_rest { std::vec![entry(1, 0, 0)] } else { Vec::new() };
            ivhd(0x11, number, 0xfd00_0000 + u64::from(number) * 0x4000, &[rest, entries(behind)].concat())
        });
        let description = read_ivrs(ivrs(&blocks.collect::<Vec<_>>()));
        let edges = units.iter().flat_map(|(_, behind)| behind.iter().map(|(first, more, _)| first.saturating_add(*more)));
        for requester in asked.into_iter().chain(edges) {
            let is_in = |(first, more, _): &&Behind| (*first..=first.saturating_add(*more)).contains(&requester);
            let is_named = |(_, _, alias): &&Behind| *alias == Some(requester);
            let listed = units.iter().position(|(_, behind)| behind.iter().any(|one| is_in(&one)));
            let named = || units.iter().position(|(_, behind)| behind.iter().any(|one| is_named(&one)));
            let rest = || units.iter().position(|(has_rest, _)| *has_rest);
            let place = Bdf::of_requester(0, requester);
            let unit = listed.or_else(named).or_else(rest);
            prop_assert_eq!(description.unit_of(place), unit);
            let alias = unit.and_then(|unit| units[unit].1.iter().filter(is_in).find_map(|(_, _, alias)| *alias));
            prop_assert_eq!(description.alias_of(place).requester(), alias.unwrap_or(requester));
        }
    }

    #[test]
    fn bytes_changed_under_a_good_checksum_are_survived(
        is_amd: bool,
        changes in prop::collection::vec((36usize..400, any::<u8>()), 1..20),
    ) {
        let mut table = if is_amd { amd() } else { intel() };
        let length = table.len();
        changes.iter().for_each(|(at, value)| table[36 + (at - 36) % (length - 36)] = *value);
        check_bounds(&read_either(seal(table)));
    }

    #[test]
    fn any_body_is_survived(is_amd: bool, body in prop::collection::vec(any::<u8>(), 0..600), own: [u8; 12]) {
        check_bounds(&read_either(table(if is_amd { b"IVRS" } else { b"DMAR" }, own, &[body])));
    }

    #[test]
    fn structures_with_good_lengths_are_survived(
        is_amd: bool,
        bodies in prop::collection::vec((0usize..6, prop::collection::vec(any::<u8>(), 20..120)), 0..8),
    ) {
        let kinds = if is_amd { [0x10, 0x11, 0x40, 0x20, 0x21, 0x22] } else { [0, 0, 0, 1, 1, 7] };
        let blocks = bodies.into_iter().map(|(kind, body)| {
            with_length([&[kinds[kind], 0, 0, 0][..], &body].concat())
        });
        check_bounds(&read_either(table(if is_amd { b"IVRS" } else { b"DMAR" }, [0; 12], &blocks.collect::<Vec<_>>())));
    }
}
