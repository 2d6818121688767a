// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of a writer and a reader, and of writers that interrupt each other.

use std::boxed::Box;
use std::vec::Vec;

use loom::sync::atomic::AtomicU64;
use loom::thread;

use crate::layout::{HEADER_WORDS, Kind, Point, RECORD_WORDS};
use crate::name::Name;
use crate::ring::Ring;

/// A ring of one or two records, for as long as the process lives.
fn ring(records: usize) -> Ring<'static> {
    let words: Vec<AtomicU64> = (0..HEADER_WORDS + records * RECORD_WORDS).map(|_| AtomicU64::new(0)).collect();
    Ring::new(Box::leak(words.into_boxed_slice()), 7).unwrap()
}

/// Record `number` of the writers here has this stamp and argument.
fn is_sound(number: u64, point: Point) -> bool {
    point.ticks == 100 + number && u64::from(point.argument) == number && point.name == Name::Kick as u16
}

#[test]
fn a_reader_gets_a_record_whole_or_not_at_all() {
    // All interleavings with up to four switches: more take minutes and find no more.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let ring = ring(1);
        let writer = thread::spawn(move || {
            (0..2_u32).for_each(|number| ring.write(Kind::Instant, Name::Kick, number, || 100 + u64::from(number)));
        });
        for number in 0..2 {
            assert!(ring.get(number).is_none_or(|point| is_sound(number, point)));
        }
        writer.join().unwrap();
        assert!(ring.get(0).is_none(), "overwritten");
        assert!(is_sound(1, ring.get(1).unwrap()));
    });
}

#[test]
fn two_writers_of_one_ring_never_share_a_place() {
    loom::model(|| {
        let ring = ring(2);
        let write = move |argument| ring.write(Kind::Begin, Name::Kick, argument, || u64::from(argument));
        let other = thread::spawn(move || write(1));
        write(2);
        other.join().unwrap();
        let mut arguments = [ring.get(0).unwrap().argument, ring.get(1).unwrap().argument];
        arguments.sort_unstable();
        assert_eq!((ring.written(), arguments), (2, [1, 2]));
    });
}

#[test]
fn a_writer_that_is_interrupted_leaves_both_records() {
    loom::model(|| {
        let ring = ring(2);
        // The interrupt comes between the number and the stamp, where it could do most harm.
        ring.write(Kind::Begin, Name::Kick, 0, || {
            ring.write(Kind::Instant, Name::Clock, 1, || 50);
            60
        });
        let [outer, inner] = [ring.get(0).unwrap(), ring.get(1).unwrap()];
        assert_eq!((outer.ticks, outer.argument, inner.ticks, inner.argument), (60, 0, 50, 1));
    });
}

#[test]
fn a_writer_whose_place_is_taken_meanwhile_does_no_harm() {
    loom::model(|| {
        let ring = ring(1);
        ring.write(Kind::Begin, Name::Kick, 0, || {
            ring.write(Kind::Instant, Name::Clock, 1, || 50);
            60
        });
        assert_eq!((ring.get(0).unwrap().ticks, ring.written()), (60, 2));
        assert!(ring.get(1).is_none(), "it was overwritten by the one that it interrupted");
    });
}
