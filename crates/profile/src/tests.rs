// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of walking, of samples and of sessions; and races, every interleaving of them.

use std::vec::Vec;

use loom::sync::Arc;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::session::{MOST_PER_SECOND, SILENCE_NS, period_us};
use crate::sync::{AtomicU32, Ordering};
use crate::walk::{Interrupted, frames, walk};
use crate::{MOST_FRAMES, MOST_WORDS, Place, Ring, Sample, Samples, Session};

const STACK: u64 = 0xffff_c000_0000_4000;
const CODE: u64 = 0xffff_ffff_8020_1000;

/// A stack of these quadwords, walked from its first.
fn walked(words: &[u64], from: u64, most: usize) -> Vec<u64> {
    let stack = STACK..STACK + 8 * words.len() as u64;
    let mut into = std::vec![0; most];
    let read = |at: u64| {
        assert!(stack.contains(&at) && at.is_multiple_of(8), "{at:#x} is not on the stack");
        words[((at - STACK) / 8) as usize]
    };
    let count = walk(from, stack.clone(), &read, &mut into);
    into.truncate(count);
    into
}

#[test]
fn a_chain_of_frames_is_walked_to_its_end() {
    let words = [STACK + 24, 1, 0, STACK + 40, 2, 0, 3, 0];
    assert_eq!(walked(&words, STACK, 9), [1, 2, 3]);
    assert_eq!(walked(&words, STACK, 2), [1, 2]);
}

#[test]
fn a_frame_pointer_that_cannot_be_one_ends_the_walk() {
    for from in [0, STACK - 8, STACK + 4, STACK + 8, STACK + 16, u64::MAX - 7] {
        assert_eq!(walked(&[0, 0], from, 9), [0; 0], "{from:#x}");
    }
    assert_eq!(walked(&[STACK, 1], STACK, 9), [1]);
}

/// The frames of code that was interrupted with the stack pointer at the stack's beginning, the frame pointer in it, by
/// offset.
fn frames_at(bytes: &[u8], words: &[u64], frame_pointer: u64) -> Vec<u32> {
    let interrupted = Interrupted { at: CODE + 1, bytes, stack_pointer: STACK, frame_pointer };
    let stack = STACK..STACK + 8 * words.len() as u64;
    let mut into = [0; MOST_FRAMES];
    let count = frames(&interrupted, CODE..CODE + 100, stack, &|at| words[((at - STACK) / 8) as usize], &mut into);
    into[..count].to_vec()
}

#[test]
fn the_caller_is_found_where_the_chain_does_not_know_it() {
    let words = [CODE + 2, CODE + 3, 0, CODE + 4];
    let chain = STACK + 16;
    assert_eq!(frames_at(&[0x55, 0x48, 0x89, 0xe5], &words, chain), [1, 2, 4], "push rbp");
    assert_eq!(frames_at(&[0x48, 0x89, 0xe5, 0x41], &words, chain), [1, 3, 4], "mov rbp, rsp");
    assert_eq!(frames_at(&[0xc3], &words, chain), [1, 2, 4], "ret");
    assert_eq!(frames_at(&[0x48, 0x89, 0xe6], &words, chain), [1, 4], "anything else");
    assert_eq!(frames_at(&[], &words, 0), [1]);
    assert_eq!(frames_at(&[0x48, 0x89, 0xe5], &words[..1], 0), [1], "beyond the stack");
}

#[test]
fn what_is_no_code_ends_a_sample() {
    assert_eq!(frames_at(&[], &[STACK + 16, CODE + 100, 0, CODE + 4], STACK), [1]);
}

fn words_of(sample: Sample<'_>) -> Vec<u32> {
    sample.encode(&mut [0; MOST_WORDS]).to_vec()
}

fn any_sample() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        Just(words_of(Sample::Idle)),
        (0_u32..1 << 30).prop_map(|number| words_of(Sample::Guest(number))),
        vec(any::<u32>(), 1..MOST_FRAMES + 9).prop_map(|frames| words_of(Sample::Host(&frames))),
    ]
}

proptest! {
    #[test]
    fn a_walk_stays_on_its_stack_and_ends(words in vec(prop_oneof![any::<u64>(), STACK - 9..STACK + 99], 0..12), from in STACK - 9..STACK + 99) {
        prop_assert!(walked(&words, from, 64).len() <= words.len());
    }

    #[test]
    fn samples_come_back_as_they_were(samples in vec(any_sample(), 0..9)) {
        let words = samples.concat();
        let again: Vec<_> = Samples(&words).map(words_of).collect();
        prop_assert_eq!(again, samples);
    }

    #[test]
    fn any_words_are_read_to_an_end(words in vec(any::<u32>(), 0..40)) {
        prop_assert!(Samples(&words).count() <= words.len());
    }
}

#[test]
fn a_stack_that_is_too_deep_keeps_its_nearest_frames() {
    let frames: Vec<u32> = (0..40).collect();
    assert_eq!(words_of(Sample::Host(&frames))[1..], frames[..MOST_FRAMES]);
}

#[test]
fn no_profile_takes_more_samples_than_the_limits() {
    assert_eq!(period_us(100, 2), 10_000);
    assert_eq!(period_us(0, 2), 1_000_000);
    assert_eq!(period_us(u32::MAX, 2), 1000);
    assert_eq!(256 * 1_000_000 / period_us(1000, 256), MOST_PER_SECOND);
}

#[test]
fn a_profile_that_no_client_reads_ends() {
    let mut session = Session::begin(7, 100);
    assert!(!session.is_abandoned(99 + SILENCE_NS) && session.is_abandoned(100 + SILENCE_NS));
    assert!(!session.hear(8, 5000), "another's");
    assert!(session.is_abandoned(100 + SILENCE_NS));
    assert!(session.hear(7, 5000) && !session.is_abandoned(100 + SILENCE_NS));
}

/// Two samples of two words and one of one, through a ring of four words.
#[test]
fn a_reader_gets_whole_samples_in_order_and_all_others_are_counted() {
    loom::model(|| {
        let ring = Arc::new(Ring::<4>::of_any_memory());
        ring.reset();
        let writer = {
            let ring = ring.clone();
            loom::thread::spawn(move || {
                ring.push(&[6, 10]);
                ring.push(&[6, 20]);
                ring.push(&[5]);
            })
        };
        let mut words = Vec::new();
        let left = ring.take(3, &mut |word| words.push(word));
        assert!(words.len() + left == 3 && [0, 2].contains(&words.len()), "{words:?}");
        writer.join().expect("ends");
        while ring.take(3, &mut |word| words.push(word)) < 3 {}
        let all: &[u32] = &[6, 10, 6, 20, 5];
        assert_eq!(words, all[..all.len() - ring.lost() as usize]);
    });
}

#[test]
fn withdrawn_memory_is_not_used() {
    loom::model(|| {
        let (place, is_freed) = (Arc::new(Place::default()), Arc::new(AtomicU32::new(0)));
        place.give(1);
        let handler = {
            let (place, is_freed) = (place.clone(), is_freed.clone());
            loom::thread::spawn(move || {
                place.with(|_| assert_eq!(is_freed.load(Ordering::Relaxed), 0, "it has another owner by now"));
            })
        };
        place.withdraw();
        if place.is_quiet() {
            is_freed.store(1, Ordering::Relaxed);
        }
        handler.join().expect("ends");
        assert!(place.is_quiet() && !place.is_given());
    });
}
