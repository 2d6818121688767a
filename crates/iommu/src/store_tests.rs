// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame that is given out belongs to one owner, across images, too.

use std::collections::BTreeMap;
use std::vec::Vec;

use paging::TableMemory as _;
use proptest::prelude::*;
use units::{KIB, MIB, PAGE_BYTES, PhysAddr, PhysRange};

use super::{MAX_PIECES, Store, Words};
use crate::{Memory as _, Problem};

/// Memory that reads as garbage where it was never written.
#[derive(Clone, Debug, Default)]
struct Sparse(BTreeMap<u64, u64>);

impl Words for Sparse {
    fn read(&self, at: PhysAddr) -> u64 {
        assert!(at.is_aligned(8));
        self.0.get(&at.0).copied().unwrap_or(0xdead_beef_dead_beef)
    }

    fn write(&mut self, at: PhysAddr, value: u64) {
        assert!(at.is_aligned(8));
        self.0.insert(at.0, value);
    }

    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]) {
        assert!(at.is_aligned(16));
        self.write(at, values[0]);
        self.write(PhysAddr(at.0 + 8), values[1]);
    }

    fn write_back(&mut self, _: PhysAddr, _: u64) {}
}

fn piece(start: u64, bytes: u64) -> PhysRange {
    PhysRange::from_start(PhysAddr(start), bytes).unwrap()
}

fn store() -> Store<Sparse> {
    let mut store = Store::new(Sparse::default());
    store.add(piece(4 * MIB, MIB)).unwrap();
    store
}

#[test]
fn a_table_is_aligned_as_it_is_long_and_zero() {
    let mut store = store();
    let small = store.allocate().unwrap();
    let large = store.allocate_piece(256 * KIB).unwrap();
    assert!(large.is_aligned(256 * KIB));
    assert!(small.0 < large.0 && large.0 + 256 * KIB <= 5 * MIB);
    assert!((0..256 * KIB / 8).all(|index| store.read_word(PhysAddr(large.0 + index * 8)) == 0));
    assert_eq!(store.allocate_piece(MIB), None, "the head is in the way");
    assert_eq!(store.allocate_piece(3 * PAGE_BYTES), None, "no power of two");
}

#[test]
fn memory_without_an_owner_is_neither_read_nor_written() {
    let mut store = store();
    let table = store.allocate().unwrap();
    store.free(table);
    store.write(table, 0, 7);
    assert_eq!(store.read(table, 0), 0);
    store.free_piece(PhysAddr(4 * MIB), PAGE_BYTES);
    assert_ne!(store.allocate(), Some(PhysAddr(4 * MIB)), "the head is never free");
    store.free_piece(PhysAddr(u64::MAX - 4095), PAGE_BYTES);
}

#[test]
fn the_next_image_knows_what_is_in_use() {
    let mut before = store();
    let kept = before.allocate_piece(64 * KIB).unwrap();
    before.write_word(kept, 42);
    let mut after = Store::new(before.words.clone());
    after.adopt(piece(4 * MIB, MIB)).unwrap();
    assert_eq!(after.read_word(kept), 42);
    assert!(after.holds(kept, 64 * KIB));
    assert_ne!(after.allocate_piece(64 * KIB), Some(kept));
}

#[test]
fn what_is_no_piece_is_not_adopted() {
    let before = store();
    let refused = |change: fn(&mut Sparse), range: PhysRange| {
        let mut words = before.words.clone();
        change(&mut words);
        matches!(Store::new(words).adopt(range), Err(Problem::NotAdopted { .. }))
    };
    let at = 4 * MIB;
    assert!(!refused(|_| {}, piece(at, MIB)));
    assert!(refused(|_| {}, piece(at, 2 * MIB)), "another size");
    assert!(refused(|_| {}, piece(at + PAGE_BYTES, MIB)), "no head there");
    assert!(refused(|_| {}, piece(at, PAGE_BYTES)), "too small");
    assert!(refused(|words| _ = words.0.insert(4 * MIB + 8, 2), piece(at, MIB)), "another version");
    assert!(refused(|_| {}, piece(at + 8, MIB)), "not aligned");
}

#[test]
fn there_are_only_so_many_pieces() {
    let mut store = Store::new(Sparse::default());
    for index in 0..MAX_PIECES as u64 {
        store.add(piece((index + 1) * MIB, 2 * PAGE_BYTES)).unwrap();
    }
    assert_eq!(store.add(piece(64 * MIB, MIB)), Err(Problem::OutOfMemory));
    let pages: Vec<_> = std::iter::from_fn(|| store.allocate()).collect();
    assert_eq!(pages.len(), MAX_PIECES, "each piece has one page beside its head");
}

proptest! {
    #[test]
    fn nothing_is_given_out_twice(orders in prop::collection::vec((0..3u32, any::<bool>()), 1..40)) {
        let mut store = store();
        let mut owned: Vec<PhysRange> = Vec::new();
        for (order, is_free) in orders {
            if is_free && !owned.is_empty() {
                let range = owned.swap_remove(order as usize % owned.len());
                store.free_piece(range.start(), range.bytes());
                prop_assert!(!store.holds(range.start(), 8));
            } else if let Some(at) = store.allocate_piece(PAGE_BYTES << order) {
                let range = piece(at.0, PAGE_BYTES << order);
                prop_assert!(owned.iter().all(|other| other.intersection(range).is_none()));
                prop_assert!(range.start().0 >= 4 * MIB + PAGE_BYTES && range.end().0 <= 5 * MIB);
                owned.push(range);
            }
            prop_assert!(owned.iter().all(|range| store.holds(range.start(), range.bytes())));
        }
    }
}
