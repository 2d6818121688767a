// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of unpacking. The streams are zlib's, of each kind of block.

use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use crate::inflate::{Corrupt, inflate};

const SENTENCE: &str = "Baton is replaced while its guests run. ";
/// The sentence as it is.
const STORED: &str = "012800d7ff4261746f6e206973207265706c61636564207768696c6520697473206775657374732072756e2e20";
/// The sentence twelve times, by the codes that all know.
const FIXED: &str = "734a2cc9cf53c82c56284a2dc8494c4e4d5128cfc8cc4955c82c2956482f4d2d065245a5797a0a4ea3ea86a43a00";
/// The sentence, behind its first nine bytes.
const BEHIND: &str = "7382318a520b721293535314ca3332735215324b8a15d24b538b815451699e9e0200";
/// Three hundred letters, by codes of their own.
const DYNAMIC: &str = "05c14101c0400c04a17f55c41ab3e75f43a13e0f3a83657800054b2325d5e58e346b1e787d7d3d65f4a554e830ea0d17c66279be775ddd988bebfb92ea2aae7a7d55cbabcf4797f956787020c75e435a93f455b61e3b64d236d76dea9aba1c4fcce5fc";
const LETTERS: &str = "bb\nadaaaab acaaaacbacaaadaaaaaaaabbaaaacbabcaababbababbb ba  aababcacbcadaaaaadb\nb\nbdabbacaab\nbabbabbbaaab aaacaabbdcaaa baaacaacbaacbada\nd b bb caaca baa b\n\nbababbb bbbaa bbbdb\nbbbbcbadbb\na\naab baca\ncbbaaadaaaa aaaaaba aacdbcaaababcbcababab\nbbbaccbdaac aaabacababccca b ccabb bcabb ba aadabaaca ba a";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.chars().map(|digit| digit.to_digit(16).expect("a digit") as u8).collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

/// Returns the bytes that a stream unpacks to behind `known`, with room for `room` bytes.
fn unpacked(stream: &[u8], known: &str, room: usize) -> Result<Vec<u8>, Corrupt> {
    let mut memory = vec![0; known.len() + room];
    memory[..known.len()].copy_from_slice(known.as_bytes());
    let end = inflate(stream, &mut memory, known.len())?;
    Ok(memory[known.len()..end].to_vec())
}

#[test]
fn each_kind_of_block_is_unpacked() {
    assert_eq!(unpacked(&bytes(STORED), "", 100), Ok(SENTENCE.into()));
    assert_eq!(unpacked(&bytes(FIXED), "", 1000), Ok(SENTENCE.repeat(12).into()));
    assert_eq!(unpacked(&bytes(DYNAMIC), "", 300), Ok(LETTERS.into()));
}

#[test]
fn what_is_there_already_is_the_window() {
    assert_eq!(unpacked(&bytes(BEHIND), "Baton is ", 100), Ok(SENTENCE.into()));
    assert_eq!(unpacked(&bytes(BEHIND), "", 100), Err(Corrupt), "it refers to bytes before the first");
}

#[test]
fn what_does_not_fit_or_is_cut_is_refused() {
    for stream in [STORED, FIXED, DYNAMIC].map(bytes) {
        assert_eq!(unpacked(&stream, "", 30), Err(Corrupt));
        for length in 0..stream.len() {
            assert_eq!(unpacked(&stream[..length], "", 1000), Err(Corrupt), "{length} bytes of {stream:x?}");
        }
    }
    assert_eq!(unpacked(&[7], "", 10), Err(Corrupt), "there is no fourth kind of block");
}

proptest! {
    #[test]
    fn any_bytes_are_unpacked_or_refused(stream in prop::collection::vec(any::<u8>(), 0..300), room in 0..2000usize) {
        if let Ok(content) = unpacked(&stream, "window", room) {
            prop_assert!(content.len() <= room);
        }
    }

    #[test]
    fn a_damaged_stream_is_unpacked_to_no_more_than_there_is_room_for(place in 0..2000usize, change in 1..=255u8) {
        let mut stream = bytes(DYNAMIC);
        let place = place % stream.len();
        stream[place] ^= change;
        let content = unpacked(&stream, "", 400);
        prop_assert!(content.is_err() || content.is_ok_and(|content| content.len() <= 400), "{}", format!("{place}"));
    }
}
