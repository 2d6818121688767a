// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real rings: the records that they keep and drop, and how the next image goes on in them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use timeline::layout::HEADER_WORDS;
use timeline::{AdoptError, Kind, MAXIMUM_ARGUMENT, Name, Point, Ring, TooSmall, ring_words};

fn memory(words: usize) -> Vec<AtomicU64> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

fn fill(ring: &Ring<'_>, count: u32) {
    (0..count).for_each(|number| ring.write(Kind::Instant, Name::Kick, number, || u64::from(number) * 10));
}

fn arguments(ring: &Ring<'_>) -> Vec<u32> {
    (ring.oldest()..ring.written()).filter_map(|number| ring.get(number)).map(|point| point.argument).collect()
}

#[test]
fn a_ring_keeps_the_newest_and_counts_all() {
    let memory = memory(ring_words(4));
    let ring = Ring::new(&memory, 3).unwrap();
    fill(&ring, 10);
    assert_eq!((ring.written(), ring.oldest(), ring.cpu()), (10, 6, 3));
    assert_eq!(arguments(&ring), [6, 7, 8, 9]);
    assert_eq!((ring.get(5), ring.get(10)), (None, None), "overwritten, and not yet written");
    assert_eq!(ring.get(9), Some(Point { ticks: 90, name: Name::Kick as u16, kind: Kind::Instant, argument: 9 }));
}

#[test]
fn a_ring_has_as_many_records_as_a_power_of_two() {
    let memory = memory(ring_words(7));
    let ring = Ring::new(&memory, 0).unwrap();
    fill(&ring, 20);
    assert_eq!(arguments(&ring), [16, 17, 18, 19]);
    let words = ring_words(1) - 1;
    assert_eq!(Ring::new(&memory[..words], 0).unwrap_err(), TooSmall { words });
}

#[test]
fn memory_that_was_used_before_holds_no_record_of_a_new_ring() {
    let memory = memory(ring_words(4));
    fill(&Ring::new(&memory, 0).unwrap(), 4);
    let ring = Ring::new(&memory, 0).unwrap();
    assert_eq!((ring.written(), ring.get(0), ring.get(3)), (0, None, None));
}

#[test]
fn the_next_image_goes_on_under_the_same_numbers() {
    let memory = memory(ring_words(8));
    fill(&Ring::new(&memory, 2).unwrap(), 5);
    let ring = Ring::adopt(&memory).unwrap();
    ring.append(Point { ticks: 1, name: 999, kind: Kind::End, argument: 5 });
    assert_eq!((ring.written(), ring.cpu(), arguments(&ring)), (6, 2, vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(ring.get(5).unwrap().name, 999, "a name that this release does not know");
}

#[test]
fn what_is_no_ring_is_refused_with_the_reason() {
    let words = memory(ring_words(4));
    let refusal = |words: &[AtomicU64]| Ring::adopt(words).unwrap_err();
    assert_eq!((refusal(&words[..3]), refusal(&words)), (AdoptError::NoRing, AdoptError::NoRing));
    Ring::new(&words, 1).unwrap();
    assert_eq!(refusal(&words[..ring_words(3)]), AdoptError::Damaged);
    for capacity in [0, 3, u64::MAX] {
        words[2].store(capacity, Ordering::Relaxed);
        assert_eq!(refusal(&words), AdoptError::Damaged);
    }
    words[1].fetch_add(1, Ordering::Relaxed);
    assert_eq!(refusal(&words), AdoptError::OtherVersion);
}

#[test]
fn an_argument_that_is_too_large_is_the_largest() {
    let memory = memory(ring_words(1));
    let ring = Ring::new(&memory, 0).unwrap();
    ring.write(Kind::Begin, Name::Kick, u32::MAX, || 1);
    assert_eq!(ring.get(0).unwrap().argument, MAXIMUM_ARGUMENT);
}

#[test]
fn names_have_numbers_and_texts_of_their_own() {
    let numbers: BTreeSet<u16> = Name::ALL.iter().map(|name| *name as u16).collect();
    let texts: BTreeSet<&str> = Name::ALL.iter().map(|name| name.text()).collect();
    assert_eq!((numbers.len(), texts.len()), (Name::ALL.len(), Name::ALL.len()));
    assert!(numbers.iter().all(|number| (1..1 << 12).contains(number)), "a record has 12 bits for it");
    assert!(Name::ALL.iter().all(|name| Name::from_number(*name as u16) == Some(*name)));
    assert_eq!(Name::from_number(0), None);
}

proptest! {
    /// Whatever an adopted ring's words are, reading it ends, and writing into it works.
    #[test]
    fn any_words_that_are_adopted_can_be_read_and_gone_on_with(
        head in any::<u64>(), words in prop::collection::vec(any::<u64>(), ring_words(4) - HEADER_WORDS)
    ) {
        let memory = memory(ring_words(4));
        Ring::new(&memory, 0).unwrap();
        memory[3].store(head, Ordering::Relaxed);
        memory[HEADER_WORDS..].iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        let ring = Ring::adopt(&memory).unwrap();
        prop_assert!(arguments(&ring).len() <= 4);
        fill(&ring, 1);
        prop_assert_eq!(ring.get(head).unwrap().argument, 0);
    }

    /// A ring is a list that drops its beginning.
    #[test]
    fn a_ring_holds_the_end_of_what_was_written(records in 1_usize..40, count in 0_u32..200) {
        let memory = memory(ring_words(records));
        let ring = Ring::new(&memory, 0).unwrap();
        fill(&ring, count);
        let capacity = 1 << records.ilog2();
        let expected: Vec<u32> = (count.saturating_sub(capacity)..count).collect();
        prop_assert_eq!(arguments(&ring), expected);
    }
}
