// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::prelude::*;

use super::{ACCESSED, DIRTY, path};
use crate::addr::Gpa;
use crate::machine::walk::tests::{four_levels, long_mode, memory_with};
use crate::machine::walk::{Purpose, translate};
use crate::memory::GuestMemory;
use crate::testing::{FakeMemory, FakeVcpu};
use crate::vcpu::{cr0, cr4, efer};

const ENTRIES: [u64; 4] = [0x1000, 0x2000, 0x3010, 0x4018];

fn marked(vcpu: &FakeVcpu, memory: &FakeMemory, linear: u64, purpose: Purpose) {
    assert!(path(vcpu, memory, linear, purpose).expect("it is mapped").mark(memory, purpose));
}

fn bits(memory: &FakeMemory, gpa: u64) -> u64 {
    memory.read_u64(Gpa(gpa)).expect("in memory") & (ACCESSED | DIRTY)
}

#[test]
fn a_read_sets_the_accessed_bit_of_every_level() {
    let memory = four_levels(7);
    marked(&long_mode(0x1000), &memory, 0x40_3abc, Purpose::Read);
    assert_eq!(ENTRIES.map(|gpa| bits(&memory, gpa)), [ACCESSED; 4]);
}

#[test]
fn a_write_sets_the_dirty_bit_of_the_last_level_too() {
    let memory = four_levels(7);
    marked(&long_mode(0x1000), &memory, 0x40_3abc, Purpose::Write);
    assert_eq!(ENTRIES.map(|gpa| bits(&memory, gpa)), [ACCESSED, ACCESSED, ACCESSED, ACCESSED | DIRTY]);
}

#[test]
fn the_entry_of_a_large_page_is_the_last() {
    let memory = memory_with(&[(0x1000, 0x2007), (0x2000, 0x3007), (0x3008, 0x60_0087)]);
    marked(&long_mode(0x1000), &memory, 0x3f_f123, Purpose::Write);
    assert_eq!([0x1000, 0x2000, 0x3008].map(|gpa| bits(&memory, gpa)), [ACCESSED, ACCESSED, ACCESSED | DIRTY]);
}

#[test]
fn entries_of_four_bytes_are_marked_beside_their_neighbours() {
    let memory = memory_with(&[(0x1000, u64::from(u32::MAX) | 0x2007 << 32), (0x2008, 0x1111_1111 | 0x9007 << 32)]);
    let vcpu = FakeVcpu { cr0: cr0::PE | cr0::PG, cr3: 0x1000, ..FakeVcpu::default() };
    marked(&vcpu, &memory, 0x40_3010, Purpose::Write);
    assert_eq!(memory.read_u64(Gpa(0x1000)), Ok(u64::from(u32::MAX) | 0x2027 << 32));
    assert_eq!(memory.read_u64(Gpa(0x2008)), Ok(0x1111_1111 | 0x9067 << 32));
}

#[test]
fn the_four_pointers_of_pae_have_no_such_bits() {
    let memory = memory_with(&[(0x1008, 0x2001), (0x2010, 0x3007), (0x3018, 0x9007)]);
    let vcpu = FakeVcpu { cr0: cr0::PE | cr0::PG, cr3: 0x1000, cr4: cr4::PAE, ..FakeVcpu::default() };
    marked(&vcpu, &memory, 0x4040_3010, Purpose::Write);
    assert_eq!([0x1008, 0x2010, 0x3018].map(|gpa| bits(&memory, gpa)), [0, ACCESSED, ACCESSED | DIRTY]);
}

#[test]
fn an_entry_that_the_guest_has_changed_stays_as_it_is() {
    let memory = four_levels(7);
    let walked = path(&long_mode(0x1000), &memory, 0x40_3abc, Purpose::Write).expect("it is mapped");
    // Not present: software may use all other bits.
    memory.write(Gpa(0x4018), &0x1234_5600_u64.to_le_bytes()).expect("in memory");
    assert!(!walked.mark(&memory, Purpose::Write));
    assert_eq!(memory.read_u64(Gpa(0x4018)), Ok(0x1234_5600));
}

/// Entries that a walk of four-level tables goes through, by the manual's figures: one index of nine bits after the
/// other.
fn expected(memory: &FakeMemory, root: u64, linear: u64) -> Vec<u64> {
    let mut entries = Vec::new();
    let mut table = root;
    for shift in [39, 30, 21, 12] {
        let at = table + 8 * (linear >> shift & 0x1ff);
        entries.push(at);
        let entry = memory.read_u64(Gpa(at)).expect("tables are in memory");
        if entry & 0x80 != 0 && (shift == 30 || shift == 21) {
            break;
        }
        table = entry & 0x000f_ffff_ffff_f000;
    }
    entries
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![Just(Purpose::Read), Just(Purpose::Write)]
}

proptest! {
    #[test]
    fn marks_are_on_the_way_and_nowhere_else(
        words in prop::collection::vec(0u64..0x200, 2048),
        linear in any::<u64>(),
        cpl in prop_oneof![Just(0u8), Just(3)],
        purpose in purpose(),
    ) {
        let memory = FakeMemory::new(0x4000);
        for (index, word) in words.iter().enumerate() {
            // Tables lead to one of four tables; writable, user and large bits vary, few entries are absent.
            let entry = (word & 3) << 12 | (word >> 1 & 0x86) | u64::from(word % 16 != 0);
            memory.write(Gpa(index as u64 * 8), &entry.to_le_bytes()).unwrap();
        }
        let vcpu = FakeVcpu { cpl, ..long_mode(0) };
        let before = memory.bytes(Gpa(0), 0x4000);
        let translated = translate(&vcpu, &memory, linear, purpose);
        let walked = path(&vcpu, &memory, linear, purpose);
        prop_assert_eq!(walked.map(|path| path.gpa), translated);
        prop_assert_eq!(&memory.bytes(Gpa(0), 0x4000), &before, "a walk changes nothing");
        let Ok(walked) = walked else { return Ok(()) };
        let mut wanted = before;
        let entries = expected(&memory, 0, linear);
        entries.iter().for_each(|at| wanted[*at as usize] |= ACCESSED as u8);
        if purpose == Purpose::Write {
            wanted[*entries.last().expect("at least one") as usize] |= DIRTY as u8;
        }
        // An entry that is met twice on the way has changed when it is to be marked again: the next walk marks it.
        let mut tries = 0;
        while !path(&vcpu, &memory, linear, purpose).is_ok_and(|path| path.mark(&memory, purpose)) {
            tries += 1;
            prop_assert!(tries < 5);
        }
        prop_assert_eq!(walked.gpa, translate(&vcpu, &memory, linear, purpose).expect("as before"));
        prop_assert_eq!(memory.bytes(Gpa(0), 0x4000), wanted);
    }

    #[test]
    fn junk_tables_are_marked_without_harm(
        words in prop::collection::vec(any::<u64>(), 512),
        linear in any::<u64>(),
        (cr0, cr3, cr4, efer) in any::<(u64, u64, u64, u64)>(),
        purpose in purpose(),
    ) {
        let memory = FakeMemory::new(0x4000);
        for (index, word) in words.iter().enumerate() {
            memory.write(Gpa(index as u64 * 32), &word.to_le_bytes()).unwrap();
        }
        let vcpu = FakeVcpu { cr0, cr3: cr3 & 0x3fff, cr4, efer, ..FakeVcpu::default() };
        let before = memory.bytes(Gpa(0), 0x4000);
        if let Ok(path) = path(&vcpu, &memory, linear, purpose) {
            let _ = path.mark(&memory, purpose);
        }
        let changes = before.iter().zip(memory.bytes(Gpa(0), 0x4000)).map(|(old, new)| old ^ new);
        prop_assert!(changes.into_iter().all(|change| u64::from(change) & !(ACCESSED | DIRTY) == 0));
    }
}

#[test]
fn without_paging_there_is_nothing_to_mark() {
    let memory = FakeMemory::new(16);
    let vcpu = FakeVcpu { efer: efer::LME, ..FakeVcpu::default() };
    marked(&vcpu, &memory, 0x1234, Purpose::Write);
    assert_eq!(memory.bytes(Gpa(0), 16), [0; 16]);
}
