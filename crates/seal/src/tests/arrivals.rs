// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that arrive in pieces.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::{Announced, Arrival, ArrivalError, Portable, SEAL_BYTES, Sha256};

fn announced(file: &[u8]) -> Announced<()> {
    let mut hash = Sha256::new(Portable);
    hash.update(file);
    Announced { kind: (), bytes: file.len() as u64, digest: hash.finish() }
}

fn arrival(file: &[u8]) -> Arrival<Portable, ()> {
    Arrival::new(Portable, announced(file), 0, 10)
}

const FILE: &[u8] = b"all of a file";

#[test]
fn pieces_out_of_order_are_passed_over_and_the_sender_learns_where_to_go_on() {
    let (mut arrival, mut memory) = (arrival(FILE), vec![0; FILE.len()]);
    assert_eq!(arrival.take(4, b"of", &mut memory, 1), Ok(0));
    assert_eq!(arrival.take(0, b"all ", &mut memory, 2), Ok(4));
    assert_eq!(arrival.take(0, b"all ", &mut memory, 3), Ok(4), "twice");
    assert_eq!(arrival.take(2, b"l ", &mut memory, 4), Ok(4));
    assert_eq!(arrival.take(4, b"", &mut memory, 4), Ok(4));
    assert!(!arrival.is_whole());
    assert_eq!(arrival.take(4, &FILE[4..], &mut memory, 5), Ok(13));
    assert!(arrival.is_whole() && memory == FILE);
    assert_eq!(arrival.take(13, b"more", &mut memory, 6), Ok(13), "it is whole already");
}

#[test]
fn a_file_that_is_another_is_refused_at_its_end() {
    let (mut arrival, mut memory) = (arrival(FILE), vec![0; FILE.len()]);
    assert_eq!(arrival.take(0, b"all of a fils", &mut memory, 1), Err(ArrivalError::Damaged));
    let mut longer = self::arrival(FILE);
    assert_eq!(longer.take(0, b"all of a file and more", &mut memory, 1), Err(ArrivalError::TooLong));
    assert_eq!(longer.next_offset(), 0);
    assert_eq!(longer.take(0, FILE, &mut [0; 4], 1), Err(ArrivalError::TooLong), "there is no memory for it");
}

#[test]
fn a_file_is_abandoned_when_nothing_comes() {
    let (mut arrival, mut memory) = (arrival(FILE), vec![0; FILE.len()]);
    assert_eq!(arrival.abandoned_at(), 10);
    assert_eq!(arrival.take(0, b"all ", &mut memory, 7), Ok(4));
    assert_eq!(arrival.abandoned_at(), 17);
    arrival.touch(u64::MAX);
    assert_eq!(arrival.abandoned_at(), u64::MAX);
}

proptest! {
    /// With any losses, repetitions and reordering, a sender that goes on from where it is asked to gets all of it
    /// across, and nothing else ever counts as whole.
    #[test]
    fn any_line_gets_the_file_across_in_the_end(
        file in prop::collection::vec(any::<u8>(), 1..300),
        tries in prop::collection::vec((any::<prop::sample::Index>(), 1..60usize), 0..60),
    ) {
        let (mut arrival, mut memory) = (arrival(&file), vec![0; file.len()]);
        for (place, length) in &tries {
            let start = place.index(file.len());
            let piece: Vec<u8> = file[start..].iter().copied().take(*length).collect();
            let before = arrival.next_offset();
            let next = arrival.take(start as u64, &piece, &mut memory, 0).expect("nothing is wrong with it");
            prop_assert!(next == before || (start as u64 == before && next == before + piece.len() as u64));
            prop_assert_eq!(arrival.is_whole(), next == file.len() as u64);
        }
        while !arrival.is_whole() {
            let next = arrival.next_offset() as usize;
            arrival.take(next as u64, &file[next..file.len().min(next + 7)], &mut memory, 0).expect("in order");
        }
        let content = announced(&file[..file.len().saturating_sub(SEAL_BYTES)]).digest;
        prop_assert_eq!(arrival.content_digest(), Some(&content));
        prop_assert_eq!(memory, file);
    }
}
