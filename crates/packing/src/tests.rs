// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of packing: what a host unpacks.

use proptest::prelude::*;
use seal::{Corrupt, Unpacker};

use super::{Effort, MAX_SPAN_BYTES, Packer};

const LIMIT: usize = 4024;

/// The file as a host has it after all pieces, and the bytes on the line; with little effort it has the same.
fn sent(file: &[u8], limit: usize) -> (Vec<u8>, usize) {
    let (there, _) = sent_with(file, limit, Effort::Little);
    assert!(there == file);
    sent_with(file, limit, Effort::Most)
}

fn sent_with(file: &[u8], limit: usize, effort: Effort) -> (Vec<u8>, usize) {
    let (mut there, mut at, mut on_the_line) = (vec![0; file.len()], 0, 0);
    let (mut packer, mut unpacker) = (Packer::new(file, 0, limit, effort), Unpacker::default());
    while at < file.len() {
        let piece = packer.piece();
        assert!(piece.packed.len() <= limit && (1..=MAX_SPAN_BYTES).contains(&piece.bytes));
        let end = at + piece.bytes;
        assert!(piece.begins == (at == 0));
        assert_eq!(unpacker.unpack(&piece.packed, &mut there[at..end]), Ok(()));
        (at, on_the_line) = (end, on_the_line + piece.packed.len());
    }
    assert_eq!(packer.piece().bytes, 0);
    (there, on_the_line)
}

/// Bytes that no packer makes shorter.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

#[test]
fn text_takes_less_than_half() {
    let text = include_str!("lib.rs").as_bytes();
    let (there, on_the_line) = sent(text, LIMIT);
    assert!(there == text);
    assert!(on_the_line * 2 < text.len(), "{on_the_line} of {}", text.len());
}

#[test]
fn zeros_are_sent_in_pieces_that_a_host_unpacks_at_once() {
    let zeros = vec![0; 100 << 10];
    let (there, on_the_line) = sent(&zeros, LIMIT);
    assert!(there == zeros && on_the_line < 1000, "{on_the_line}");
}

#[test]
fn what_cannot_be_packed_takes_a_header_more() {
    let noise = noise(20_000);
    let (there, on_the_line) = sent(&noise, LIMIT);
    assert!(there == noise && on_the_line <= 20_000 + 5 * 3, "{on_the_line}");
}

/// Pieces that were lost are sent again by a stream that begins where the host has got to.
#[test]
fn a_stream_begins_at_any_place() {
    let file = include_str!("lib.rs").repeat(4).into_bytes();
    let (mut there, mut at) = (vec![0; file.len()], 0);
    let mut unpacker = Unpacker::default();
    while at < file.len() {
        let mut packer = Packer::new(&file, at, 300, Effort::Most);
        for begins in [true, false] {
            let piece = packer.piece();
            assert_eq!(piece.begins, begins);
            if begins {
                unpacker = Unpacker::default();
            }
            let end = at + piece.bytes;
            assert_eq!(unpacker.unpack(&piece.packed, &mut there[at..end]), Ok(()));
            at = end;
        }
    }
    assert!(there == file);
}

#[test]
fn a_piece_is_refused_without_those_before_it() {
    let mut packer = Packer::new(include_str!("lib.rs").as_bytes(), 0, 500, Effort::Most);
    packer.piece();
    let second = packer.piece();
    assert_eq!(Unpacker::default().unpack(&second.packed, &mut vec![0; second.bytes]), Err(Corrupt));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_file_comes_out_as_it_was(
        parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 1..60usize), 0..20),
        limit in 64..LIMIT,
    ) {
        let file: Vec<u8> = parts.iter().flat_map(|(bytes, times)| bytes.repeat(*times)).collect();
        prop_assert!(sent(&file, limit).0 == file);
    }

    #[test]
    fn a_damaged_piece_is_refused_or_fills_its_place(place in any::<usize>(), change in 1..=255u8, cut in any::<bool>()) {
        let file = include_str!("lib.rs").as_bytes();
        let mut piece = Packer::new(file, 0, LIMIT, Effort::Most).piece();
        let place = place % piece.packed.len();
        piece.packed[place] ^= change;
        if cut {
            piece.packed.truncate(place);
        }
        let mut there = vec![7; piece.bytes + 1];
        let unpacked = Unpacker::default().unpack(&piece.packed, &mut there[..piece.bytes]);
        prop_assert!(there[piece.bytes] == 7 && (unpacked.is_err() || !cut));
    }
}
