// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring against a list, several rings against a sorted list, and readers against any bytes.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{CLOCK, TestRing, records, text_of};
use klog::{
    Copied, Cursor, Foreign, Level, MAXIMUM_MODULE_BYTES, MAXIMUM_TEXT_BYTES, MINIMUM_RING_WORDS, Memory as _, Merge,
    Merged, Reach, Step,
};
use proptest::prelude::*;

/// Action of a reader or a writer, in any order.
#[derive(Clone, Debug)]
enum Act {
    Write(Level, String, String),
    Read,
}

fn act() -> impl Strategy<Value = Act> {
    let level = prop::sample::select(&Level::ALL[..]);
    prop_oneof![
        3 => (level, "[a-z:;é]{0,20}|.{0,40}", ".{0,90}").prop_map(|(level, module, text)| Act::Write(level, module, text)),
        1 => Just(Act::Read),
    ]
}

/// `text` as a record keeps it.
fn kept(text: &str, most: usize, mark: &str) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    text[..text.floor_char_boundary(text.floor_char_boundary(most).min(most - mark.len()))].to_owned() + mark
}

/// Returns the part of a module's path that is kept.
fn last_part(path: &str) -> &str {
    path.rsplit(':').next().unwrap_or_default()
}

proptest! {
    #[test]
    fn a_reader_sees_the_newest_records_unchanged_and_counts_the_others(
        acts in prop::collection::vec(act(), 1..120),
        extra_words in 0usize..40,
    ) {
        let ring = TestRing::new(MINIMUM_RING_WORDS + extra_words, 0);
        let (mut cursor, mut copied, mut written) = (Cursor::start(), Copied::new(), Vec::new());
        for act in &acts {
            match act {
                Act::Write(level, module, text) => {
                    let ticks = written.len() as u64 * 3;
                    let number = ring.get().write(*level, module, format_args!("{text}"), || ticks);
                    prop_assert_eq!(number, written.len() as u64);
                    written.push((*level, module, text));
                }
                Act::Read => {
                    let before = cursor.sequence();
                    match cursor.next(ring.get(), Reach::Complete, &mut copied) {
                        Step::Nothing => prop_assert_eq!(before, written.len() as u64),
                        Step::Lost(lost) => prop_assert!(lost > 0 && cursor.sequence() == before + lost),
                        Step::Record => {
                            let (level, module, text) = &written[before as usize];
                            let record = copied.record(0, CLOCK);
                            prop_assert_eq!((record.sequence, record.time_ns, record.level), (before, before * 3, *level));
                            prop_assert_eq!(record.module, kept(last_part(module), MAXIMUM_MODULE_BYTES, ""));
                            prop_assert_eq!(record.text, kept(text, MAXIMUM_TEXT_BYTES, "…"));
                            prop_assert!(!record.to_string().contains(char::is_control));
                        }
                    }
                }
            }
        }
        // Nothing is thrown away before it must be.
        let oldest = Cursor::oldest(ring.get()).sequence() as usize;
        let words = |&(_, module, text): &(Level, &String, &String)| {
            2 + (kept(last_part(module), MAXIMUM_MODULE_BYTES, "").len() + kept(text, MAXIMUM_TEXT_BYTES, "…").len()).div_ceil(8)
        };
        let room = ring.get().data_words();
        if oldest > 0 {
            prop_assert!(written[oldest - 1..].iter().map(words).sum::<usize>() >= room, "it would still fit");
        }
        prop_assert!(written[oldest..].iter().map(words).sum::<usize>() < room);
        prop_assert_eq!(ring.records().len(), written.len() - oldest);
    }

    #[test]
    fn merged_rings_come_sorted_and_complete(gaps in prop::collection::vec((0usize..3, 0u64..3), 0..30)) {
        let rings = [0, 1, 2].map(|cpu| TestRing::new(MINIMUM_RING_WORDS, cpu));
        let (mut now, mut expected) = (0, Vec::new());
        for (ring, gap) in gaps {
            now += gap;
            rings[ring].get().write(Level::Info, "m", format_args!("{now}"), || now);
            expected.push((now, ring));
        }
        // Of two records of the same time, the lower CPU's comes first.
        expected.sort();
        let (mut merge, mut copied, mut found) = (Merge::new([Cursor::start(); 3]), Copied::new(), Vec::new());
        while let Some(merged) = merge.next(|ring| Some(rings[ring].get()), Reach::Complete, &mut copied) {
            let Merged::Record { ring } = merged else { panic!("the rings are large enough") };
            found.push((copied.ticks(), ring));
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_damaged_ring_is_read_to_its_end_whatever_its_words_are(
        lengths in prop::collection::vec(0usize..60, 0..60),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let ring = TestRing::new(MINIMUM_RING_WORDS, 1);
        for &length in &lengths {
            ring.get().write(Level::Info, "m", format_args!("{:length$}", ""), || 1);
        }
        let mut bytes = ring.bytes();
        // The first three words identify it as a ring; other tests change them.
        damage.iter().for_each(|(at, byte)| { let at = 24 + at.index(bytes.len() - 24); bytes[at] = *byte; });
        if let Ok(foreign) = Foreign::adopt(&bytes) {
            let found = records(&foreign, Foreign::REACH);
            prop_assert!(found.len() <= foreign.data_words());
            prop_assert!(found.iter().all(|record| !record.line.contains(char::is_control)));
            let _ = (records(&foreign, Reach::Complete), Cursor::at(&foreign, 5), Cursor::newest(&foreign));
        }
    }
}

#[test]
fn a_storm_is_read_without_a_torn_record_and_counted_to_the_last() {
    const RECORDS: u64 = 200_000;
    let ring = TestRing::new(MINIMUM_RING_WORDS, 0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..RECORDS {
                // The text reports its own length, so that a torn one is found out.
                let text = (number % 97) as usize;
                ring.get().write(Level::Info, "storm", format_args!("{number} {:x>text$}", ""), || number);
            }
            is_over.store(true, Ordering::Release);
        });
        let (mut cursor, mut copied, mut seen, mut lost) = (Cursor::start(), Copied::new(), 0, 0);
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            let number = cursor.sequence();
            match cursor.next(ring.get(), Reach::Complete, &mut copied) {
                Step::Record => {
                    assert_eq!(text_of(&copied), format!("{number} {}", "x".repeat((number % 97) as usize)));
                    seen += 1;
                }
                Step::Lost(records) => lost += records,
                Step::Nothing if was_over => break,
                Step::Nothing => {}
            }
        }
        assert_eq!(seen + lost, RECORDS);
        assert!(seen > 0);
    });
}
