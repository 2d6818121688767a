// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of any stream.

use std::vec::Vec;

use proptest::prelude::*;

use super::{decoded, encoded, framed, samples};
use crate::*;

/// Returns all samples on one stream.
fn stream() -> Vec<u8> {
    samples::all().iter().flat_map(encoded).collect()
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
        decoded(&bytes);
    }

    #[test]
    fn arbitrary_content_with_the_right_checksum_never_panics(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let content = [&[VERSION][..], &content].concat();
        prop_assert_eq!(decoded(&framed(&content)).len(), 1);
    }

    #[test]
    fn any_cut_of_the_stream_yields_the_same_messages(cuts in prop::collection::vec(0..2000_usize, 0..20)) {
        let stream = stream();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let (mut decoder, mut found) = (Decoder::new(), Vec::new());
        for piece in cuts.windows(2) {
            decoder.push(&stream[piece[0]..piece[1]], |result| found.push(result));
        }
        prop_assert_eq!(found, samples::all().into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn bytes_at_once_and_one_by_one_yield_the_same(
        parts in prop::collection::vec(prop::collection::vec(0..=u8::MAX, 0..5000), 0..4),
        are_sparse: bool,
    ) {
        // Without zeros a frame outgrows the buffer.
        let filled = |byte: u8| if are_sparse { byte.max(1) } else { byte };
        let noise = parts.into_iter().map(|part| part.into_iter().map(filled).chain([0]).collect::<Vec<_>>());
        let bytes: Vec<u8> = noise.flat_map(|noise| [noise, stream()].concat()).collect();
        let mut decoder = Decoder::new();
        let one_by_one: Vec<_> = bytes.iter().filter_map(|&byte| decoder.push_byte(byte)).collect();
        prop_assert_eq!(decoded(&bytes), one_by_one);
    }

    #[test]
    fn noise_between_messages_costs_at_most_the_next_one(noise in prop::collection::vec(any::<u8>(), 0..5000)) {
        let frame = Frame::Request(Request { id: 5, body: RequestBody::Info });
        let stream = [noise, encoded(&frame), encoded(&frame)].concat();
        prop_assert!(decoded(&stream).contains(&Ok(frame)));
    }

    #[test]
    fn console_bytes_come_back_whatever_they_are(bytes in prop::collection::vec(any::<u8>(), 0..=MAX_CONSOLE_BYTES)) {
        let frame = Frame::Stream(Stream::Console { name: "g".into(), bytes: bytes.into() });
        prop_assert_eq!(decoded(&encoded(&frame)), [Ok(frame)]);
    }
}

#[test]
fn any_flipped_bit_is_noticed() {
    for frame in samples::all() {
        let bytes = encoded(&frame);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // A delimiter behind it ends the frame if its own was hit.
            flipped.push(0);
            let found = decoded(&flipped);
            assert!(!found.is_empty() && found.iter().all(Result::is_err), "bit {bit} of {frame:?}: {found:?}");
        }
    }
}
