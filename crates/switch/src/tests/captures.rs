// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of captures.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::{CAPTURE_BYTES, Capture, Captured, MAX_SNAP_BYTES, Seen};

fn frame(number: u32, bytes: u32) -> Seen {
    Seen { time_ns: u64::from(number) << 33, sender: number % 3, bytes }
}

/// Keeps a frame whose bytes are all the number's.
fn keep(capture: &mut Capture, number: u32, bytes: u32) {
    let read = |content: &mut [u8]| {
        content.fill(number as u8);
        Ok::<(), ()>(())
    };
    assert_eq!(capture.keep(frame(number, bytes), read), Ok(()));
}

#[test]
fn a_frame_is_kept_up_to_the_length_that_is_wanted() {
    let mut capture = Capture::new(None, 100).expect("memory");
    for (number, bytes) in [(1, 60), (2, 100), (3, 1514), (4, 0)] {
        keep(&mut capture, number, bytes);
        let content = vec![number as u8; (bytes as usize).min(100)];
        assert_eq!(capture.oldest_bytes(), Some(content.len()));
        assert_eq!(capture.take(), Some(Captured { seen: frame(number, bytes), content }));
    }
    assert_eq!((capture.take(), capture.seen(), capture.lost()), (None, 4, 0));
}

#[test]
fn frames_without_room_are_counted_and_the_older_ones_stay() {
    let mut capture = Capture::new(None, usize::MAX).expect("memory");
    (0..200).for_each(|number| keep(&mut capture, number, 65_000));
    let kept: Vec<Captured> = std::iter::from_fn(|| capture.take()).collect();
    assert_eq!(kept.len(), CAPTURE_BYTES / (MAX_SNAP_BYTES + 18));
    assert!((0..).zip(&kept).all(|(number, kept)| kept.seen == frame(number, 65_000)));
    assert_eq!((capture.seen(), capture.lost()), (200, 200 - kept.len() as u64));
    keep(&mut capture, 7, 60);
    assert_eq!(capture.take().map(|kept| kept.seen), Some(frame(7, 60)), "there is room again");
}

#[test]
fn a_frame_that_cannot_be_read_is_not_kept() {
    let mut capture = Capture::new(None, 100).expect("memory");
    assert_eq!(capture.keep(frame(1, 60), |_| Err("outside")), Err("outside"));
    assert_eq!((capture.take(), capture.seen()), (None, 1));
}

proptest! {
    /// Frames come out in order, whatever is taken in between, and each is either kept or counted as lost.
    #[test]
    fn nothing_is_lost_without_being_counted(
        steps in prop::collection::vec((any::<bool>(), 0..5000u32), 0..400),
        snap in 0..4000usize,
    ) {
        let mut capture = Capture::new(Some(1), snap).expect("memory");
        let (mut number, mut taken) = (0, Vec::new());
        for (is_frame, bytes) in steps {
            if is_frame {
                keep(&mut capture, number, bytes);
                number += 1;
            } else {
                taken.extend(capture.take());
            }
        }
        taken.extend(std::iter::from_fn(|| capture.take()));
        prop_assert!(taken.is_sorted_by_key(|kept| kept.seen.time_ns));
        prop_assert_eq!(taken.len() as u64 + capture.lost(), capture.seen());
        for Captured { seen, content } in taken {
            prop_assert_eq!(content.len(), snap.min(MAX_SNAP_BYTES).min(seen.bytes as usize));
            prop_assert!(content.iter().all(|byte| *byte == (seen.time_ns >> 33) as u8));
        }
    }
}
