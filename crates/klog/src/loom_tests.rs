// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving: of a writer and a reader on two CPUs (loom), and of a writer with interrupts before each
//! of its operations.
//!
//! The rings are as small as can be, so that two records of three words fill one.

use std::boxed::Box;
use std::string::{String, ToString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Plain, Ordering as PlainOrdering};
use std::vec::Vec;

use loom::model::Builder;

use crate::layout::*;
use crate::reader::{Cursor, Memory as _, Reach, Step};
use crate::record::Copied;
use crate::ring::Ring;
use crate::sync::AtomicU64;
use crate::sync::interruptible::{disarm, interrupt_after};
use crate::{Clock, Level};

const DATA_WORDS: usize = 8;

/// A ring that outlives the model, as the hypervisor's do.
fn ring(data_words: usize) -> Ring<'static> {
    let words = |count| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    let header = words(HEADER_WORDS).first_chunk().expect("a header");
    let ring = Ring { header, data: words(data_words) };
    ring.set_clock(Clock::default());
    ring
}

/// Writes record `name`; its time is one more than the last one's.
fn write(ring: &Ring<'_>, clock: &Plain, name: u64) -> u64 {
    ring.write(Level::Info, "", format_args!("{name}"), || clock.fetch_add(1, PlainOrdering::Relaxed))
}

/// Returns the findings of a reader from `cursor` on: names of records, and how many are lost.
fn read(ring: &Ring<'_>, cursor: &mut Cursor, reach: Reach) -> (Vec<String>, u64) {
    let (mut names, mut lost, mut copied, mut last_ticks) = (Vec::new(), 0, Copied::new(), None);
    loop {
        let before = cursor.sequence();
        match cursor.next(ring, reach, &mut copied) {
            Step::Nothing => return (names, lost),
            Step::Lost(records) => lost += records,
            Step::Record => {
                assert_eq!(copied.record(0, Clock::default()).sequence, before);
                assert!(last_ticks < Some(copied.ticks()), "times rise with the numbers");
                last_ticks = Some(copied.ticks());
                names.push(copied.record(0, Clock::default()).text.to_string());
            }
        }
    }
}

/// Runs `work` with an interrupt before its first operation, before its second, …, until it reports that none came.
fn interrupted_everywhere(work: impl Fn(usize) -> bool + Send + Sync + 'static) {
    let work = Arc::new(work);
    for point in 0.. {
        let has_come = Arc::new(Plain::new(0));
        let (this, came) = (work.clone(), has_come.clone());
        loom::model(move || came.store(this(point).into(), PlainOrdering::Relaxed));
        if has_come.load(PlainOrdering::Relaxed) == 0 {
            assert!(point > 10, "there were operations to interrupt");
            return;
        }
    }
}

#[test]
fn an_interrupt_anywhere_in_a_write_may_write_too() {
    interrupted_everywhere(|point| {
        let (ring, clock) = (ring(32), Arc::new(Plain::new(0)));
        write(&ring, &clock, 1);
        let inner_clock = clock.clone();
        interrupt_after(point, move || {
            write(&ring, &inner_clock, 3);
        });
        write(&ring, &clock, 2);
        let has_come = !disarm();
        let (names, lost) = read(&ring, &mut Cursor::start(), Reach::Complete);
        assert_eq!(lost, 0);
        let expected: &[&[&str]] = if has_come { &[&["1", "2", "3"], &["1", "3", "2"]] } else { &[&["1", "2"]] };
        assert!(expected.iter().any(|expected| *expected == names), "{names:?}");
        has_come
    });
}

#[test]
fn interrupts_of_interrupts_may_write_too() {
    for inner_point in 0..45 {
        interrupted_everywhere(move |point| {
            let (ring, clock, interrupts) = (ring(32), Arc::new(Plain::new(0)), Arc::new(Plain::new(0)));
            let (inner_clock, inner_interrupts) = (clock.clone(), interrupts.clone());
            interrupt_after(point, move || {
                let (innermost_clock, innermost_interrupts) = (inner_clock.clone(), inner_interrupts.clone());
                inner_interrupts.fetch_add(1, PlainOrdering::Relaxed);
                // It may come after the inner writer is done: then it interrupts the outer one a second time.
                interrupt_after(inner_point, move || {
                    innermost_interrupts.fetch_add(1, PlainOrdering::Relaxed);
                    write(&ring, &innermost_clock, 3);
                });
                write(&ring, &inner_clock, 2);
            });
            write(&ring, &clock, 1);
            disarm();
            let came = interrupts.load(PlainOrdering::Relaxed);
            let (mut names, lost) = read(&ring, &mut Cursor::start(), Reach::Complete);
            names.sort();
            assert_eq!((names.concat(), lost), ("123"[..1 + came as usize].to_string(), 0));
            came > 0
        });
    }
}

#[test]
fn an_interrupt_finds_its_way_through_what_it_interrupted() {
    interrupted_everywhere(|point| {
        let (ring, clock) = (ring(32), Arc::new(Plain::new(0)));
        write(&ring, &clock, 1);
        let inner_clock = clock.clone();
        // As at the end of a host: the interrupt is the last reader.
        interrupt_after(point, move || {
            write(&ring, &inner_clock, 3);
            let (names, lost) = read(&ring, &mut Cursor::start(), Reach::Everything);
            assert!(
                names == ["1", "3"] && lost <= 1 || names == ["1", "2", "3"] && lost == 0,
                "{names:?}, {lost} lost"
            );
        });
        write(&ring, &clock, 2);
        !disarm()
    });
}

#[test]
fn a_cpu_that_was_reset_anywhere_in_a_write_begins_again() {
    // Unwinding leaves the writer where it was; nothing of it runs any more.
    interrupted_everywhere(|point| {
        let (ring, clock) = (ring(32), Arc::new(Plain::new(0)));
        write(&ring, &clock, 1);
        interrupt_after(point, || std::panic::resume_unwind(Box::new("reset")));
        let reset = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write(&ring, &clock, 2)));
        disarm();
        ring.restart();
        write(&ring, &clock, 3);
        let (names, lost) = read(&ring, &mut Cursor::start(), Reach::Complete);
        assert!(
            names.first().is_some_and(|name| name == "1") && names.last().is_some_and(|name| name == "3"),
            "{names:?}"
        );
        assert_eq!(names.len() as u64 + lost, ring.written());
        reset.is_err()
    });
}

#[test]
fn a_storm_of_interrupts_never_overwrites_what_it_interrupted() {
    const STORM: u64 = 6;
    interrupted_everywhere(|point| {
        let (ring, clock) = (ring(DATA_WORDS), Arc::new(Plain::new(0)));
        for name in 1..=3 {
            write(&ring, &clock, name);
        }
        let inner_clock = clock.clone();
        interrupt_after(point, move || {
            for name in 0..STORM {
                write(&ring, &inner_clock, 10 + name);
            }
        });
        write(&ring, &clock, 4);
        let has_come = !disarm();
        assert_eq!(ring.written(), if has_come { 4 + STORM } else { 4 });
        let (names, lost) = read(&ring, &mut Cursor::start(), Reach::Complete);
        assert_eq!(names.len() as u64 + lost, ring.written(), "{names:?}");
        assert!(!names.is_empty());
        assert!(names.iter().all(|name| name.parse::<u64>().is_ok_and(|name| name < 10 + STORM)), "{names:?}");
        has_come
    });
}

/// A writer and a reader on two CPUs; the reader's findings are checked as they come.
fn race(reach: Reach, prefilled: u64, written: u64) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(move || {
        let (ring, clock): (_, &'static Plain) = (ring(DATA_WORDS), Box::leak(Box::new(Plain::new(0))));
        for name in 0..prefilled {
            write(&ring, clock, name);
        }
        let writer = loom::thread::spawn(move || {
            (prefilled..prefilled + written).for_each(|name| assert_eq!(write(&ring, clock, name), name));
        });
        let (mut cursor, mut copied, mut count) = (Cursor::start(), Copied::new(), 0);
        let mut steps = |cursor: &mut Cursor, most: usize, reach| {
            for _ in 0..most {
                match cursor.next(&ring, reach, &mut copied) {
                    Step::Nothing => return,
                    Step::Lost(lost) => count += lost,
                    Step::Record => {
                        let record = copied.record(0, Clock::default());
                        assert_eq!(record.text, record.sequence.to_string(), "a torn record was believed");
                        assert_eq!((copied.ticks(), record.sequence), (count, count));
                        count += 1;
                    }
                }
            }
        };
        steps(&mut cursor, 2, reach);
        writer.join().expect("it ends");
        steps(&mut cursor, 10, Reach::Complete);
        assert_eq!(count, prefilled + written, "each record is seen or counted");
    });
}

#[test]
fn a_reader_believes_only_what_was_not_overwritten() {
    race(Reach::Complete, 2, 2);
}

#[test]
fn a_reader_sees_records_only_when_they_are_complete() {
    race(Reach::Complete, 0, 2);
}
