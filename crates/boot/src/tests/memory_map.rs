// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use std::string::ToString;

use super::*;
use RegionKind::{AcpiNvs, AcpiReclaimable, Persistent, Reserved, Unusable, Usable};

fn map(entries: &[(u64, u64, RegionKind)]) -> MemoryMap {
    let mut builder = MapBuilder::default();
    entries.iter().for_each(|(start, bytes, kind)| builder.add(PhysAddr(*start), *bytes, *kind).unwrap());
    builder.finish().unwrap()
}

fn region(start: u64, end: u64, kind: RegionKind) -> Region {
    Region { range: range(start, end), kind }
}

#[test]
fn entries_are_sorted_and_joined() {
    let map = map(&[(0x8000, 0x1000, Reserved), (0x4000, 0x2000, Usable), (0x2000, 0x2000, Usable)]);
    assert_eq!(map.regions(), [region(0x2000, 0x6000, Usable), region(0x8000, 0x9000, Reserved)]);
    assert_eq!(map.usable_bytes(), 0x4000);
    assert_eq!((map.kind_at(PhysAddr(0x5fff)), map.kind_at(PhysAddr(0x6000))), (Some(Usable), None));
}

#[test]
fn the_more_restrictive_kind_wins_where_entries_overlap() {
    let map = map(&[(0x1000, 0x1000, AcpiNvs), (0, 0x10000, Usable), (0x1000, 0x2000, AcpiReclaimable)]);
    let expected = [
        region(0, 0x1000, Usable),
        region(0x1000, 0x2000, AcpiNvs),
        region(0x2000, 0x3000, AcpiReclaimable),
        region(0x3000, 0x10000, Usable),
    ];
    assert_eq!(map.regions(), expected);
}

#[test]
fn usable_memory_shrinks_to_whole_pages_and_all_else_grows() {
    let map =
        map(&[(0, 0x9fc00, Usable), (0x9fc00, 0x400, Reserved), (0x100100, 0x1f00, Usable), (0x200800, 1, Usable)]);
    let expected = [region(0, 0x9f000, Usable), region(0x9f000, 0xa0000, Reserved), region(0x101000, 0x102000, Usable)];
    assert_eq!(map.regions(), expected);
}

#[test]
fn absurd_entries_are_counted_or_cut() {
    let mut builder = MapBuilder::default();
    for (start, bytes) in [(0x1000, 0), (1 << 52, 0x1000), (u64::MAX, u64::MAX), ((1 << 52) - 0x1000, u64::MAX)] {
        builder.add(PhysAddr(start), bytes, Usable).unwrap();
    }
    assert_eq!(builder.absurd_entries(), 3);
    assert_eq!(builder.finish().unwrap().regions(), [region((1 << 52) - 0x1000, 1 << 52, Usable)]);
}

#[test]
fn a_map_with_too_many_entries_is_refused_and_not_cut_short() {
    let mut builder = MapBuilder::default();
    for index in 0..MAXIMUM_REGIONS as u64 {
        builder.add(PhysAddr(index * 0x2000), 0x1000, Usable).unwrap();
    }
    assert_eq!(builder.clone().finish().unwrap().regions().len(), MAXIMUM_REGIONS);
    assert_eq!(builder.add(PhysAddr(0), 0x1000, Reserved), Err(TooManyRegions));
    let mut nested = MapBuilder::default();
    nested.add(PhysAddr(0), 1 << 30, Usable).unwrap();
    for index in 1..MAXIMUM_REGIONS as u64 {
        nested.add(PhysAddr(index * 0x2000), 0x1000, Reserved).unwrap();
    }
    assert_eq!(nested.finish(), Err(TooManyRegions));
    assert_eq!(TooManyRegions.to_string(), "the memory map has more than 128 entries");
}

#[test]
fn unknown_types_are_reserved() {
    let kinds = [0, 1, 2, 3, 4, 5, 6, 7, 8, u32::MAX].map(RegionKind::from_acpi_type);
    let expected =
        [Reserved, Usable, Reserved, AcpiReclaimable, AcpiNvs, Unusable, Reserved, Persistent, Reserved, Reserved];
    assert_eq!(kinds, expected);
}

const PAGES: usize = 64;

proptest! {
    #[test]
    fn every_page_has_the_kind_of_the_most_restrictive_entry(
        entries in prop::collection::vec((0..PAGES as u64 * 4096, 0u64..40_000, 1u32..8), 0..20),
    ) {
        let entries: Vec<_> = entries.into_iter().map(|(s, b, k)| (s, b, RegionKind::from_acpi_type(k))).collect();
        let map = map(&entries);
        for page in 0..PAGES as u64 + 10 {
            let (start, end) = (page * 4096, page * 4096 + 4096);
            let covers = |(from, bytes, kind): &&(u64, u64, RegionKind)| match kind {
                Usable => *from <= start && end <= from + bytes,
                _ => *bytes > 0 && *from < end && start < from + bytes,
            };
            let expected = entries.iter().filter(covers).map(|(_, _, kind)| *kind).max();
            prop_assert_eq!(map.kind_at(PhysAddr(start)), expected);
        }
        for pair in map.regions().windows(2) {
            let apart = pair[0].range.end() < pair[1].range.start();
            prop_assert!(apart || (pair[0].range.end() == pair[1].range.start() && pair[0].kind != pair[1].kind));
        }
    }
}
