// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of unpacking. The streams are those of xz.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::{Corrupt, Unpacker};

const SENTENCE: &str = "Baton is replaced while its guests run. ";
/// The sentence as it is.
const STORED: &str = "0100274261746f6e206973207265706c61636564207768696c6520697473206775657374732072756e2e20";
/// The sentence twelve times.
const PACKED: &str =
    "e001df002f030021190de7f10ccd4730dec0146b06694a7ce1994db4ee66e3cec7fafbe21b3db404ab8f05abfe1b687dc19578268000";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.chars().map(|digit| digit.to_digit(16).expect("a digit") as u8).collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

/// Returns the bytes that a piece unpacks to.
fn unpacked(piece: &[u8], bytes: usize) -> Result<Vec<u8>, Corrupt> {
    let mut place = vec![0; bytes];
    Unpacker::default().unpack(piece, &mut place).map(|()| place)
}

#[test]
fn each_kind_of_chunk_is_unpacked() {
    assert_eq!(unpacked(&bytes(STORED), 40), Ok(SENTENCE.into()));
    assert_eq!(unpacked(&bytes(PACKED), 480), Ok(SENTENCE.repeat(12).into()));
    assert_eq!(unpacked(&[bytes(STORED), bytes(PACKED)].concat(), 520), Ok(SENTENCE.repeat(13).into()));
}

#[test]
fn another_length_than_stated_is_refused() {
    for (piece, length) in [(STORED, 40), (PACKED, 480)] {
        for stated in [0, length - 1, length + 1, 2 * length] {
            assert_eq!(unpacked(&bytes(piece), stated), Err(Corrupt), "{stated} of {length} bytes");
        }
    }
}

#[test]
fn a_cut_piece_and_one_that_goes_on_behind_the_end_are_refused() {
    for (piece, length) in [(STORED, 40), (PACKED, 480)] {
        let whole = bytes(piece);
        for cut in 0..whole.len() {
            assert_eq!(unpacked(&whole[..cut], length), Err(Corrupt), "{cut} bytes of {}", whole.len());
        }
        assert_eq!(unpacked(&[&whole[..], &[0, 0]].concat(), length), Err(Corrupt), "the stream has ended");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_unpacked_or_refused(piece in prop::collection::vec(any::<u8>(), 0..300), room in 0..2000usize) {
        let _ = unpacked(&piece, room);
        let _ = unpacked(&[bytes(STORED), piece].concat(), 40 + room);
    }
}
