// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 against its standard's examples and against `sha2`'s own.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use sha2::Digest as _;

use crate::{Block, Check, Compress, Digest, Portable, Sha256};

fn digest_of(pieces: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new(Portable);
    pieces.iter().for_each(|piece| hash.update(piece));
    hash.finish()
}

#[test]
fn the_standards_examples_come_out() {
    // NIST, "Secure Hash Standard: Example Values" (SHA-256), and the empty message.
    let cases: [(&[u8], u32); 3] = [
        (b"abc", 0xba78_16bf),
        (b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 0x248d_6a61),
        (b"", 0xe3b0_c442),
    ];
    for (message, head) in cases {
        assert_eq!(digest_of(&[message])[..4], head.to_be_bytes());
    }
}

/// Counts what it is given.
struct Counting(usize);

impl Compress for &mut Counting {
    fn compress(&mut self, state: &mut [u32; 8], blocks: &[Block]) {
        self.0 += blocks.len();
        Portable.compress(state, blocks);
    }
}

#[test]
fn whole_blocks_go_to_the_engine_as_they_are() {
    let mut engine = Counting(0);
    let mut hash = Sha256::new(&mut engine);
    hash.update(&[0; 640]);
    hash.finish();
    assert_eq!(engine.0, 11, "ten of the message, one of padding");
}

proptest! {
    #[test]
    fn any_message_in_any_pieces_has_the_digest_of_another_implementation(
        message in prop::collection::vec(any::<u8>(), 0..400),
        cuts in prop::collection::vec(0..400usize, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(message.len())).collect();
        cuts.extend([0, message.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &message[pair[0]..pair[1]]).collect();
        prop_assert_eq!(digest_of(&pieces), <[u8; 32]>::from(sha2::Sha256::digest(&message)));
    }

    #[test]
    fn a_check_never_takes_more_than_a_slice_and_takes_all_in_the_end(bytes in 0..3000u64, slice in 1..700u64) {
        let image = vec![7; bytes as usize];
        let mut check = Check::new(Portable, bytes);
        let mut before = 0;
        loop {
            let is_over = check.step(slice, |at| &image[at as usize..(at as usize + 100).min(image.len())]);
            prop_assert!(check.bytes() - before <= slice);
            prop_assert_eq!(is_over, check.bytes() == bytes);
            before = check.bytes();
            if is_over {
                break;
            }
        }
        prop_assert_eq!(check.digest(), digest_of(&[&image]));
    }
}

#[test]
fn a_check_of_bytes_that_are_not_there_ends() {
    let mut check = Check::new(Portable, 100);
    assert!(check.step(1000, |at| &[1; 64][(at as usize).min(64)..]));
    assert_eq!(check.bytes(), 64);
}
