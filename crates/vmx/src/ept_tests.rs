// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use paging::{Entry, Flags, Format, MapError, PageSize, PhysAddr, TableMemory, Tables};
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { physical_bits: 46, execute_only: false, pages_1_gib: true, pages_2_mib: true };

/// Frames in a map.
#[derive(Default)]
struct Memory(BTreeMap<u64, Vec<u64>>);

impl TableMemory for Memory {
    fn allocate(&mut self) -> Option<PhysAddr> {
        let frame = (self.0.len() as u64 + 1) << 12;
        self.0.insert(frame, std::vec![0; 512]);
        Some(PhysAddr(frame))
    }
    fn free(&mut self, _: PhysAddr) {}
    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.0[&table.0][index]
    }
    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.0.get_mut(&table.0).unwrap()[index] = entry;
    }
}

/// Checks every entry of a table and of those below, and counts the pages.
fn pages_below(memory: &Memory, table: PhysAddr, level: u8) -> usize {
    let entries = (0..512).map(|index| memory.read(table, index));
    let pages = entries.map(|entry| {
        assert_eq!(check(entry, level, &LIMITS), Ok(()), "{entry:#x} at level {level}");
        match Ept::decode(entry, level) {
            Entry::Absent => 0,
            Entry::Page(..) => 1,
            Entry::Table(next) => pages_below(memory, next, level - 1),
        }
    });
    pages.sum()
}

#[test]
fn entries_have_the_bits_of_the_manual() {
    let page = |flags| Ept::page(PhysAddr(0x1234_5000), flags, 1);
    assert_eq!(page(Flags::WRITABLE), 0x1234_5037, "write-back, all rights");
    assert_eq!(page(Flags::NO_EXECUTE), 0x1234_5031);
    assert_eq!(page(Flags::WRITABLE | Flags::CACHE_DISABLE), 0x1234_5007, "uncacheable");
    assert_eq!(page(Flags::WRITABLE | Flags::WRITE_THROUGH), 0x1234_5027);
    assert_eq!(Ept::page(PhysAddr(0x20_0000), Flags::WRITABLE, 2), 0x20_00b7);
    assert_eq!(Ept::table(PhysAddr(0x7000), 4), 0x7007);
    assert_eq!(Ept::decode(0x7007, 2), Entry::Table(PhysAddr(0x7000)));
    assert_eq!(Ept::decode(0x7087, 4), Entry::Table(PhysAddr(0x7000)), "no page at the root");
    assert_eq!(Ept::decode(0x1234_50b0, 1), Entry::Absent, "no right, no entry");
}

#[test]
fn tables_use_large_pages_and_translate_addresses_without_sign() {
    let mut memory = Memory::default();
    let mut tables = Tables::<Ept>::new(&mut memory, PageSize::Gib1).unwrap();
    tables.map(&mut memory, 1 << 47, PhysAddr(0), 1 << 30, Flags::WRITABLE).unwrap();
    let found = tables.translate(&memory, 1 << 47).unwrap();
    assert_eq!((found.size, found.flags), (PageSize::Gib1, Flags::WRITABLE | Flags::USER));
    tables.protect(&mut memory, (1 << 47) + 4096, 4096, Flags::NO_EXECUTE).unwrap();
    let found = tables.translate(&memory, (1 << 47) + 4096).unwrap();
    assert_eq!((found.size, found.flags), (PageSize::Kib4, Flags::NO_EXECUTE | Flags::USER));
    assert_eq!(tables.translate(&memory, (1 << 47) + 0x20_0000).unwrap().size, PageSize::Mib2);
    let beyond = tables.map(&mut memory, 1 << 48, PhysAddr(0), 4096, Flags::empty());
    assert_eq!(beyond, Err(MapError::NotCanonical { address: 1 << 48, bytes: 4096 }));
    assert!(pages_below(&memory, tables.root(), 4) > 1000);
}

#[test]
fn the_pointer_has_type_levels_and_root() {
    assert_eq!(Eptp::of_tables(PhysAddr(0x1234_5000)).into_bits(), 0x1234_501e);
}

#[test]
fn each_misconfiguration_is_named() {
    let bad = |entry, level| check(entry, level, &LIMITS).unwrap_err();
    assert_eq!(bad(0x32, 1), Misconfiguration::WritableNotReadable);
    assert_eq!(bad(0x36, 1), Misconfiguration::WritableNotReadable);
    assert_eq!(bad(0x34, 1), Misconfiguration::ExecuteOnly);
    assert_eq!(check(0x34, 1, &Limits { execute_only: true, ..LIMITS }), Ok(()));
    assert_eq!(bad(0x37 | 1 << 46, 1), Misconfiguration::AddressTooWide);
    assert_eq!(bad(0x1007 | 1 << 3, 2), Misconfiguration::ReservedInTable);
    assert_eq!(bad(0x1007 | 1 << 7, 4), Misconfiguration::ReservedInTable);
    assert_eq!(bad(0x1000 | 0xb7, 2), Misconfiguration::MisalignedPage);
    assert_eq!(bad(0x20_0000 | 0xb7, 3), Misconfiguration::MisalignedPage);
    assert_eq!(check(0xb7, 3, &Limits { pages_1_gib: false, ..LIMITS }), Err(Misconfiguration::PageTooLarge));
    assert_eq!(check(0xb7, 2, &Limits { pages_2_mib: false, ..LIMITS }), Err(Misconfiguration::PageTooLarge));
    for number in [2, 3, 7] {
        assert_eq!(bad(number << 3 | 7, 1), Misconfiguration::MemoryType);
    }
    assert_eq!(bad(0x17, 1).to_string(), "its memory type does not exist");
}

fn rights() -> impl Strategy<Value = Flags> {
    let flags = [Flags::WRITABLE, Flags::NO_EXECUTE, Flags::CACHE_DISABLE, Flags::WRITE_THROUGH];
    prop::collection::vec(prop::sample::select(flags.to_vec()), 0..4).prop_map(|all| all.into_iter().collect())
}

proptest! {
    #[test]
    fn entries_that_are_made_are_never_misconfigured_and_decode_to_themselves(
        frame in 0u64..1 << 16,
        level in 1u8..=3,
        flags in rights(),
    ) {
        let frame = PhysAddr(frame << 30);
        let entry = Ept::page(frame, flags, level);
        prop_assert_eq!(check(entry, level, &LIMITS), Ok(()));
        let Entry::Page(found, decoded) = Ept::decode(entry, level) else { return Err(TestCaseError::fail("a page")) };
        prop_assert_eq!(found, frame);
        prop_assert_eq!(Ept::page(found, decoded, level), entry);
        let table = Ept::table(frame, level + 1);
        prop_assert_eq!(check(table, level + 1, &LIMITS), Ok(()));
        prop_assert_eq!(Ept::decode(table, level + 1), Entry::Table(frame));
    }

    #[test]
    fn every_entry_is_checked_and_decoded(entry: u64, level in 1u8..=4, physical_bits: u8) {
        let checked = check(entry, level, &Limits { physical_bits, ..LIMITS });
        prop_assert!(checked.is_ok() || Ept::decode(entry, level) != Entry::Absent);
    }
}
