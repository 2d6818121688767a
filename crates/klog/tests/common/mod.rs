// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rings for tests, and all that is in them.
#![allow(dead_code, reason = "not every test file uses everything")]

use std::sync::atomic::{AtomicU64, Ordering};

use klog::{Clock, Copied, Cursor, Level, Memory, Reach, Ring, Step};

/// A clock that counts nanoseconds.
pub const CLOCK: Clock = Clock { origin: 0, hz: 1_000_000_000 };

/// A ring and its memory, which is never given back.
pub struct TestRing {
    words: &'static [AtomicU64],
    ring: Ring<'static>,
}

/// A record, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub sequence: u64,
    pub time_ns: u64,
    pub level: Level,
    pub module: String,
    pub text: String,
    pub line: String,
}

impl TestRing {
    pub fn new(words: usize, cpu: u32) -> Self {
        let words: &'static [AtomicU64] = (0..words).map(|_| AtomicU64::new(!0)).collect::<Vec<_>>().leak();
        Self { words, ring: Ring::new(words, cpu, CLOCK).expect("large enough") }
    }

    pub fn get(&self) -> &Ring<'static> {
        &self.ring
    }

    /// The ring as another image finds it.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect()
    }

    /// The records that are kept.
    pub fn records(&self) -> Vec<Owned> {
        records(&self.ring, Reach::Complete)
    }
}

/// All records of a ring, which is not being written.
pub fn records(ring: &impl Memory, reach: Reach) -> Vec<Owned> {
    let (mut cursor, mut copied, mut found) = (Cursor::oldest(ring), Copied::new(), Vec::new());
    loop {
        match cursor.next(ring, reach, &mut copied) {
            Step::Nothing => return found,
            Step::Lost(_) => {}
            Step::Record => {
                let record = copied.record(ring.cpu_number(), ring.clock());
                found.push(Owned {
                    sequence: record.sequence,
                    time_ns: record.time_ns,
                    level: record.level,
                    module: record.module.to_owned(),
                    text: record.text.to_owned(),
                    line: record.to_string(),
                });
            }
        }
    }
}

/// Returns the text of a copied record.
pub fn text_of(copied: &Copied) -> String {
    copied.record(0, CLOCK).text.to_owned()
}
