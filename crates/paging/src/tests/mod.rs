// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use units::{GIB, KIB, MIB};

use super::*;

mod model;

const TOP_OF_LOW_HALF: u64 = 0x7fff_ffff_f000;
const BOTTOM_OF_HIGH_HALF: u64 = 0xffff_8000_0000_0000;
const LAST_PAGE: u64 = 0xffff_ffff_ffff_f000;

/// Frames in a map; `budget` bounds how many may be out at once. Panics on any use of a frame that is not out.
#[derive(Default)]
struct TestMemory {
    frames: BTreeMap<u64, Vec<u64>>,
    budget: usize,
    next: u64,
}

impl TestMemory {
    fn with_budget(budget: usize) -> Self {
        Self { budget, ..Self::default() }
    }
}

impl TableMemory for TestMemory {
    fn allocate(&mut self) -> Option<PhysAddr> {
        if self.frames.len() >= self.budget {
            return None;
        }
        self.next += 4096;
        self.frames.insert(self.next, std::vec![0; 512]);
        Some(PhysAddr(self.next))
    }

    fn free(&mut self, table: PhysAddr) {
        self.frames.remove(&table.0).expect("a freed table was allocated");
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.frames[&table.0][index]
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.frames.get_mut(&table.0).expect("a written table was allocated")[index] = entry;
    }
}

fn host(largest: PageSize) -> (TestMemory, Tables<Host>) {
    let mut memory = TestMemory::with_budget(1000);
    let tables = Tables::new(&mut memory, largest).unwrap();
    (memory, tables)
}

fn pages_by_size(memory: &TestMemory, tables: &Tables<Host>) -> BTreeMap<PageSize, usize> {
    let mut counts = BTreeMap::new();
    tables.visit(memory, |mapping| *counts.entry(mapping.size).or_default() += 1);
    counts
}

#[test]
fn entries_have_the_bits_of_the_manual() {
    let flags = Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL;
    assert_eq!(Host::page(PhysAddr(0x1234_5000), flags, 1), 0x8000_0000_1234_5103);
    assert_eq!(Host::page(PhysAddr(0x20_0000), Flags::empty(), 2), 0x20_0081);
    assert_eq!(Host::table(PhysAddr(0x7000), 4), 0x7007);
    assert_eq!(Nested::page(PhysAddr(0x4000_0000), flags, 3), 0x8000_0000_4000_0087);
    assert_eq!(Host::decode(0x7007, 2), Entry::Table(PhysAddr(0x7000)));
    assert_eq!(Host::decode(0x7087, 4), Entry::Table(PhysAddr(0x7000)));
    assert_eq!(Host::decode(0x8000_0000_1234_5102, 1), Entry::Absent);
}

#[test]
fn the_largest_pages_allowed_are_used() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    tables
        .map(&mut memory, GIB - 2 * MIB - 4 * KIB, PhysAddr(5 * GIB - 2 * MIB - 4 * KIB), 2 * GIB, Flags::empty())
        .unwrap();
    let expected = [(PageSize::Kib4, 1 + 511), (PageSize::Mib2, 1 + 510), (PageSize::Gib1, 1)];
    assert_eq!(pages_by_size(&memory, &tables), expected.into());

    let (mut memory, mut tables) = host(PageSize::Mib2);
    tables.map(&mut memory, 0, PhysAddr(0), GIB, Flags::empty()).unwrap();
    assert_eq!(pages_by_size(&memory, &tables), [(PageSize::Mib2, 512)].into());
}

#[test]
fn alignment_of_the_physical_side_limits_the_page_size_too() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    tables.map(&mut memory, 0, PhysAddr(4 * KIB), 2 * MIB, Flags::empty()).unwrap();
    assert_eq!(pages_by_size(&memory, &tables), [(PageSize::Kib4, 512)].into());
}

#[test]
fn an_overlap_is_refused_and_names_the_first_mapped_address() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    tables.map(&mut memory, BOTTOM_OF_HIGH_HALF + 8 * KIB, PhysAddr(0), 4 * KIB, Flags::empty()).unwrap();
    let refused = tables.map(&mut memory, BOTTOM_OF_HIGH_HALF, PhysAddr(0), GIB, Flags::WRITABLE);
    assert_eq!(refused, Err(MapError::AlreadyMapped { address: BOTTOM_OF_HIGH_HALF + 8 * KIB }));
    assert_eq!(tables.translate(&memory, BOTTOM_OF_HIGH_HALF), None);
    assert_eq!(refused.unwrap_err().to_string(), "address 0xffff800000002000 is mapped already: unmap it first");
}

#[test]
fn a_part_of_a_huge_page_can_be_unmapped_and_the_rest_stays() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    tables.map(&mut memory, 0, PhysAddr(GIB), GIB, Flags::WRITABLE).unwrap();
    tables.unmap(&mut memory, 6 * MIB, 4 * KIB).unwrap();
    assert_eq!(tables.translate(&memory, 6 * MIB), None);
    assert_eq!(tables.translate(&memory, 6 * MIB + 4096).unwrap().phys, PhysAddr(GIB + 6 * MIB + 4096));
    assert_eq!(pages_by_size(&memory, &tables), [(PageSize::Kib4, 511), (PageSize::Mib2, 511)].into());
    let refused = tables.unmap(&mut memory, 0, GIB);
    assert_eq!(refused, Err(MapError::NotMapped { address: 6 * MIB }));
}

#[test]
fn protecting_changes_the_rights_and_nothing_else() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    tables.map(&mut memory, 0, PhysAddr(4 * MIB), 4 * MIB, Flags::WRITABLE).unwrap();
    tables.protect(&mut memory, MIB, 4 * KIB, Flags::NO_EXECUTE).unwrap();
    let found = tables.translate(&memory, MIB + 5).unwrap();
    let expected =
        Mapping { address: MIB + 5, phys: PhysAddr(5 * MIB + 5), flags: Flags::NO_EXECUTE, size: PageSize::Kib4 };
    assert_eq!(found, expected);
    assert_eq!(tables.translate(&memory, MIB - 1).unwrap().flags, Flags::WRITABLE);
    assert_eq!(tables.translate(&memory, 3 * MIB).unwrap().size, PageSize::Mib2);
}

#[test]
fn running_out_of_tables_undoes_what_was_done() {
    for budget in 1..6 {
        let mut memory = TestMemory::with_budget(budget);
        let mut tables = Tables::<Host>::new(&mut memory, PageSize::Mib2).unwrap();
        let refused = tables.map(&mut memory, GIB - 4096, PhysAddr(GIB - 4096), 8192, Flags::empty());
        assert_eq!(refused, Err(MapError::OutOfTables));
        assert_eq!(memory.frames.len(), 1, "only the root is out");
    }
    assert_eq!(Tables::<Host>::new(&mut TestMemory::with_budget(0), PageSize::Kib4).err(), Some(MapError::OutOfTables));
}

#[test]
fn misaligned_and_out_of_range_requests_are_refused() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    let mut map = |address, phys, bytes| tables.map(&mut memory, address, PhysAddr(phys), bytes, Flags::empty());
    assert_eq!(map(1, 0, 4096), Err(MapError::Misaligned { value: 1 }));
    assert_eq!(map(0, 2, 4096), Err(MapError::Misaligned { value: 2 }));
    assert_eq!(map(0, 0, 3), Err(MapError::Misaligned { value: 3 }));
    for (address, bytes) in
        [(TOP_OF_LOW_HALF, 8192), (1 << 47, 4096), (LAST_PAGE, 8192), (0, 1 << 63), (LAST_PAGE, !4095)]
    {
        assert_eq!(map(address, 0, bytes), Err(MapError::NotCanonical { address, bytes }));
    }
    let too_high = MapError::BeyondPhysical { phys: PhysAddr((1 << 52) - 4096), bytes: 8192 };
    assert_eq!(map(0, (1 << 52) - 4096, 8192), Err(too_high));
    assert_eq!(map(TOP_OF_LOW_HALF, 0, 4096), Ok(()));
    assert_eq!(map(LAST_PAGE, 0, 4096), Ok(()));
    assert_eq!(map(LAST_PAGE, 0, 0), Ok(()), "no bytes is no work");
}

#[test]
fn nested_tables_count_addresses_without_sign_and_are_always_user() {
    let mut memory = TestMemory::with_budget(100);
    let mut tables = Tables::<Nested>::new(&mut memory, PageSize::Gib1).unwrap();
    tables.map(&mut memory, 1 << 47, PhysAddr(0), GIB, Flags::WRITABLE).unwrap();
    let found = tables.translate(&memory, 1 << 47).unwrap();
    assert_eq!(found.flags, Flags::WRITABLE | Flags::USER);
    assert_eq!(tables.translate(&memory, BOTTOM_OF_HIGH_HALF), None);
    let beyond = tables.map(&mut memory, 1 << 48, PhysAddr(0), 4096, Flags::empty());
    assert_eq!(beyond, Err(MapError::NotCanonical { address: 1 << 48, bytes: 4096 }));
}

#[test]
fn adopted_tables_translate_as_before() {
    let (mut memory, mut tables) = host(PageSize::Gib1);
    tables.map(&mut memory, LAST_PAGE, PhysAddr(0x5000), 4096, Flags::GLOBAL).unwrap();
    let adopted = Tables::<Host>::adopt(tables.root(), PageSize::Gib1);
    assert_eq!(adopted.translate(&memory, u64::MAX).unwrap().phys, PhysAddr(0x5fff));
    adopted.free_all(&mut memory);
    assert!(memory.frames.is_empty());
}
