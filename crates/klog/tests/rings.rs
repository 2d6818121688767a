// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of real rings: the content of a record, the steps of readers, and the effect of another image's memory on
//! them.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::{TestRing, text_of};
use klog::{
    Clock, Copied, Cursor, Cursors, Foreign, ForeignError, HEADER_WORDS, Level, MAXIMUM_MODULE_BYTES,
    MINIMUM_RING_WORDS, Merge, Merged, Reach, Ring, Step, TooSmall, UnknownLevel,
};

fn line(level: Level, module: &str, cpu: u32, ticks: u64, text: &str) -> String {
    let ring = TestRing::new(MINIMUM_RING_WORDS, cpu);
    ring.get().write(level, module, format_args!("{text}"), || ticks);
    ring.records().remove(0).line
}

#[test]
fn a_record_prints_as_a_console_line() {
    assert_eq!(line(Level::Info, "boot", 0, 1_234_567_890, "4 up"), "[    1.234567] cpu0 info  boot: 4 up");
    assert_eq!(line(Level::Error, "svm", 12, 3_600_000_000_999, "x"), "[ 3600.000000] cpu12 error svm: x");
}

#[test]
fn no_record_forges_a_line_or_commands_the_terminal() {
    let printed = line(Level::Warn, "a\rb", 0, 0, "one\ntwo\x1b[2J\u{9b}\tthree é");
    assert_eq!(printed, r"[    0.000000] cpu0 warn  a\rb: one\ntwo\u{1b}[2J\u{9b} three é");
}

#[test]
fn long_text_is_cut_at_a_character_and_marked() {
    let cases = [
        ("é".repeat(120), "é".repeat(120)),
        ("é".repeat(121), "é".repeat(118) + "…"),
        (format!("x{}", "é".repeat(130)), format!("x{}…", "é".repeat(118))),
        ("a".repeat(240), "a".repeat(240)),
        ("a".repeat(241), "a".repeat(237) + "…"),
    ];
    for (text, kept) in cases {
        for module in ["", "m", &"m".repeat(40)] {
            let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
            ring.get().write(Level::Info, module, format_args!("{text}"), || 0);
            let record = ring.records().remove(0);
            assert_eq!((record.module.len(), record.text), (module.len().min(MAXIMUM_MODULE_BYTES), kept.clone()));
        }
    }
}

#[test]
fn a_part_that_ends_exactly_at_the_limit_is_cut_by_the_next() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    ring.get().write(Level::Info, "m", format_args!("{}{}{}", "a".repeat(240), "b", "c"), || 0);
    assert_eq!(ring.records()[0].text, "a".repeat(237) + "…");
}

#[test]
fn a_record_that_is_written_while_another_is_formatted_comes_before_it() {
    struct Talkative<'a>(&'a TestRing);
    impl std::fmt::Display for Talkative<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.get().write(Level::Debug, "inner", format_args!("inside"), || 1);
            f.write_str("outside")
        }
    }
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    ring.get().write(Level::Info, "outer", format_args!("{}", Talkative(&ring)), || 2);
    let texts: Vec<String> = ring.records().into_iter().map(|record| record.text).collect();
    assert_eq!(texts, ["inside", "outside"]);
}

#[test]
fn a_reader_that_keeps_up_sees_each_record_once() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    let (mut cursor, mut copied) = (Cursor::start(), Copied::new());
    for number in 0..500u64 {
        assert_eq!(cursor.next(ring.get(), Reach::Complete, &mut copied), Step::Nothing);
        assert_eq!(ring.get().write(Level::Info, "m", format_args!("{number}"), || number), number);
        assert_eq!(cursor.next(ring.get(), Reach::Complete, &mut copied), Step::Record);
        assert_eq!(text_of(&copied), number.to_string());
    }
}

#[test]
fn a_reader_that_falls_behind_learns_how_far() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    (0..100u64).for_each(|number| {
        let _ = ring.get().write(Level::Info, "m", format_args!("{number}"), || number);
    });
    let (mut cursor, mut copied) = (Cursor::start(), Copied::new());
    let Step::Lost(lost) = cursor.next(ring.get(), Reach::Complete, &mut copied) else { panic!("some are gone") };
    let mut seen = lost;
    while cursor.next(ring.get(), Reach::Complete, &mut copied) == Step::Record {
        assert_eq!(text_of(&copied), seen.to_string());
        seen += 1;
    }
    assert_eq!(seen, 100);
}

#[test]
fn a_cursor_finds_a_record_by_its_number() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    (0..100u64).for_each(|number| {
        let _ = ring.get().write(Level::Info, "m", format_args!("{number}"), || number);
    });
    let oldest = Cursor::oldest(ring.get()).sequence();
    let mut copied = Copied::new();
    for wanted in oldest..100 {
        let mut cursor = Cursor::at(ring.get(), wanted);
        assert_eq!(cursor.next(ring.get(), Reach::Complete, &mut copied), Step::Record);
        assert_eq!(text_of(&copied), wanted.to_string());
    }
    assert_eq!(Cursor::at(ring.get(), 100), Cursor::newest(ring.get()));
    assert_eq!(Cursor::at(ring.get(), 0), Cursor::oldest(ring.get()));
    assert_eq!(Cursor::at(ring.get(), 101), Cursor::oldest(ring.get()), "of a log that has begun again since");
}

#[test]
fn rings_are_merged_by_time() {
    let rings = [TestRing::new(MINIMUM_RING_WORDS, 0), TestRing::new(MINIMUM_RING_WORDS, 1)];
    for (ring, time) in [(1, 5), (0, 7), (0, 8), (1, 6), (1, 9)] {
        rings[ring].get().write(Level::Info, "m", format_args!("{time}"), || time);
    }
    let (mut merge, mut copied, mut order) = (Merge::new([Cursor::start(); 4]), Copied::new(), Vec::new());
    while let Some(found) = merge.next(|index| Some(rings.get(index)?.get()), Reach::Complete, &mut copied) {
        let Merged::Record { ring } = found else { panic!("none is lost") };
        order.push((ring, copied.ticks()));
    }
    assert_eq!(order, [(1, 5), (1, 6), (0, 7), (0, 8), (1, 9)]);
}

/// Cursors as words that several readers share.
struct Words<'a>(&'a [AtomicU64]);

impl Cursors for Words<'_> {
    fn get(&self, number: usize) -> Option<Cursor> {
        self.0.get(number).map(|word| Cursor::from_word(word.load(Ordering::Relaxed)))
    }

    fn set(&mut self, number: usize, cursor: Cursor) {
        self.0[number].store(cursor.to_word(), Ordering::Relaxed);
    }
}

#[test]
fn a_reader_goes_on_where_another_with_the_same_cursors_has_got_to() {
    let rings = [TestRing::new(MINIMUM_RING_WORDS, 0), TestRing::new(MINIMUM_RING_WORDS, 1)];
    for (ring, time) in [(1, 5), (0, 6), (1, 7)] {
        rings[ring].get().write(Level::Info, "m", format_args!("{time}"), || time);
    }
    let (words, mut copied) = ([const { AtomicU64::new(0) }; 2], Copied::new());
    let mut next = || {
        let found = Merge::new(Words(&words)).next(|index| Some(rings.get(index)?.get()), Reach::Complete, &mut copied);
        found.map(|found| (found, copied.ticks()))
    };
    assert_eq!(next(), Some((Merged::Record { ring: 1 }, 5)));
    assert_eq!(next(), Some((Merged::Record { ring: 0 }, 6)));
    assert_eq!(next(), Some((Merged::Record { ring: 1 }, 7)));
    assert_eq!(next(), None);
}

#[test]
fn too_little_memory_is_refused() {
    let words: Vec<AtomicU64> = (0..MINIMUM_RING_WORDS - 1).map(|_| AtomicU64::new(0)).collect();
    let error = Ring::new(&words, 0, Clock::default()).expect_err("too small");
    assert_eq!(error, TooSmall { words: MINIMUM_RING_WORDS - 1 });
}

#[test]
fn another_image_reads_what_was_left() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 3);
    ring.get().set_clock(Clock { origin: 100, hz: 1_000_000_000 });
    ring.get().write(Level::Warn, "m", format_args!("last words"), || 1_000_000_100);
    let bytes = ring.bytes();
    let foreign = Foreign::adopt(&bytes).expect("a ring");
    let lines: Vec<String> = common::records(&foreign, Foreign::REACH).into_iter().map(|record| record.line).collect();
    assert_eq!(lines, ["[    0.001000] cpu3 warn  m: last words".replace("0.001000", "1.000000")]);
}

#[test]
fn what_is_no_ring_is_refused_with_the_reason() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    let good = ring.bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Foreign::adopt(&bytes).map(drop)
    };
    assert_eq!(Foreign::adopt(&[]).map(drop), Err(ForeignError::NoRing));
    assert_eq!(with(0, 0), Err(ForeignError::NoRing));
    assert_eq!(with(8, 2), Err(ForeignError::Version { version: 2 }));
    assert_eq!(with(10, 15), Err(ForeignError::Damaged), "another header");
    assert_eq!(with(18, 1), Err(ForeignError::Damaged), "more words than there are");
    assert_eq!(with(8 * 5, 255), Err(ForeignError::Damaged), "a head outside");
    assert_eq!(with(8 * 6 + 7, 1), Err(ForeignError::Damaged), "a tail before the head");
    assert_eq!(Foreign::adopt(&good[..8 * HEADER_WORDS]).map(drop), Err(ForeignError::Damaged));
    assert!(Foreign::adopt(&good).is_ok());
}

#[test]
fn levels_are_read_as_they_are_printed() {
    for level in Level::ALL {
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    assert_eq!("INFO".parse::<Level>(), Err(UnknownLevel));
    assert!(Level::Error < Level::Trace);
}

#[test]
fn times_are_as_the_clock_reports() {
    let clock = Clock { origin: 1000, hz: 3_000_000_000 };
    assert_eq!(clock.nanoseconds(1000 + 3_000_000_000 * 7), 7_000_000_000);
    assert_eq!((clock.nanoseconds(5), Clock::default().nanoseconds(5)), (0, 0));
    assert_eq!(Clock { origin: 0, hz: 1 }.nanoseconds(u64::MAX), u64::MAX);
}

#[test]
fn a_ring_counts_on_from_another_one_and_only_while_it_is_empty() {
    let ring = TestRing::new(MINIMUM_RING_WORDS, 3);
    ring.get().count_from(41);
    let mut from_now_on = Cursor::newest(ring.get());
    assert_eq!(ring.get().write(Level::Info, "start", format_args!("again"), || 7), 41);
    ring.get().count_from(1000);
    assert_eq!(ring.get().write(Level::Info, "start", format_args!("and on"), || 8), 42);
    let mut copied = Copied::new();
    for text in ["again", "and on"] {
        assert_eq!(from_now_on.next(ring.get(), Reach::Complete, &mut copied), Step::Record);
        assert_eq!(text_of(&copied), text);
    }
    assert_eq!(Cursor::start().next(ring.get(), Reach::Complete, &mut copied), Step::Lost(41));
}
