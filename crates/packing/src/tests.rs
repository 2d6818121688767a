// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of packing. `seal::inflate` is tested with another's streams beside this.

use proptest::prelude::*;
use seal::inflate::inflate;

use super::Packer;

/// The file as a host has it after all pieces, and the bytes on the line.
fn sent(file: &[u8], limit: usize) -> (Vec<u8>, usize) {
    let (mut there, mut at, mut on_the_line) = (vec![0; file.len()], 0, 0);
    let mut packer = Packer::new(file);
    while at < file.len() {
        match packer.piece(at, limit) {
            Some(piece) => {
                assert!(piece.packed.len() <= limit && piece.bytes <= 64 << 10);
                let end = at + piece.bytes;
                assert_eq!(inflate(&piece.packed, &mut there[..end], at), Ok(end));
                (at, on_the_line) = (end, on_the_line + piece.packed.len());
            }
            None => {
                let end = (at + limit).min(file.len());
                there[at..end].copy_from_slice(&file[at..end]);
                (at, on_the_line) = (end, on_the_line + end - at);
            }
        }
    }
    (there, on_the_line)
}

#[test]
fn text_takes_a_fraction_of_itself() {
    let text = include_str!("block.rs").as_bytes();
    let (there, on_the_line) = sent(text, 4024);
    assert!(there == text);
    assert!(on_the_line * 3 < text.len(), "{on_the_line} of {}", text.len());
}

#[test]
fn zeros_are_sent_in_pieces_that_a_host_unpacks_at_once() {
    let zeros = vec![0; 100 << 10];
    let (there, on_the_line) = sent(&zeros, 4024);
    assert!(there == zeros && on_the_line < 1000, "{on_the_line}");
}

#[test]
fn bytes_that_cannot_be_packed_are_left_as_they_are() {
    let mut state = 1u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(20_000)
    .collect();
    assert_eq!(Packer::new(&noise).piece(0, 4024), None);
    assert_eq!(sent(&noise, 4024), (noise, 20_000));
    assert_eq!(Packer::new(&[7]).piece(0, 4024), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_file_comes_out_as_it_was(
        parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), 1..60usize), 0..20),
        limit in 400..4024usize,
    ) {
        let file: Vec<u8> = parts.iter().flat_map(|(bytes, times)| bytes.repeat(*times)).collect();
        prop_assert!(sent(&file, limit).0 == file);
    }
}
