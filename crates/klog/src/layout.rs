// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of a ring's memory: words of 64 bits, little endian. It describes itself, so that a later image that is given
//! the frames can read it.
//!
//! | word | content |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | version (16 bits), words of this header (16), CPU (32) |
//! | 2 | words of records |
//! | 3, 4 | the clock: ticks at time 0, ticks per second (0: not yet known) |
//! | 5 | head: the [`Place`] that the next record gets |
//! | 6 | tail: the place of the oldest record |
//! | 7 | seen: the place up to which all records are complete |
//! | 8 | floor: the head when the outermost writer began; the tail stays behind it |
//! | 9 | writers that have interrupted each other, and are not done |
//! | 10 | the place that a writer is about to reserve, or has reserved last |
//! | 11–15 | 0 |
//!
//! Records follow, each a [`Heading`], the time in ticks, the module's name and the text without anything between them,
//! filled up with zeroes to whole words. A record may run over the end to the beginning.

use crate::level::Level;
use crate::text::{MAXIMUM_MODULE_BYTES, MAXIMUM_TEXT_BYTES};

/// `BATONLOG`.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"BATONLOG");
/// Version of this layout.
pub(crate) const VERSION: u64 = 1;
/// Words of a ring's header.
pub const HEADER_WORDS: usize = 16;
/// Words of a record's heading and time.
pub(crate) const HEADING_WORDS: usize = 2;
/// Words of the longest record.
pub(crate) const MAXIMUM_RECORD_WORDS: usize = HEADING_WORDS + (MAXIMUM_MODULE_BYTES + MAXIMUM_TEXT_BYTES).div_ceil(8);
/// The fewest words a ring takes, header included: the header and four records of any length.
pub const MINIMUM_RING_WORDS: usize = HEADER_WORDS + 4 * MAXIMUM_RECORD_WORDS;
/// The most words a ring makes use of, header included: 64 MiB.
pub const MAXIMUM_RING_WORDS: usize = 1 << (INDEX_BITS - 1);

pub(crate) const HEADER_MAGIC: usize = 0;
pub(crate) const HEADER_IDENTITY: usize = 1;
pub(crate) const HEADER_DATA_WORDS: usize = 2;
pub(crate) const HEADER_CLOCK_ORIGIN: usize = 3;
pub(crate) const HEADER_CLOCK_HZ: usize = 4;
pub(crate) const HEADER_HEAD: usize = 5;
pub(crate) const HEADER_TAIL: usize = 6;
pub(crate) const HEADER_SEEN: usize = 7;
pub(crate) const HEADER_FLOOR: usize = 8;
pub(crate) const HEADER_WRITERS: usize = 9;
pub(crate) const HEADER_RESERVING: usize = 10;

const INDEX_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 64 - INDEX_BITS;
const _: () = assert!(MAXIMUM_TEXT_BYTES <= 0xff && MAXIMUM_MODULE_BYTES <= 0x3f);

/// Version, header's size and CPU.
pub(crate) const fn identity(cpu: u32) -> u64 {
    VERSION | (HEADER_WORDS as u64) << 16 | (cpu as u64) << 32
}

/// Place of a record, written or not: its number and its first word. One word of memory, so that both change at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the record, from 0. 40 bits: a million records a second for 12 days, every second.
    pub sequence: u64,
    /// Index of its first word, below the words of records.
    pub index: usize,
}

impl Place {
    pub(crate) const fn from_word(word: u64) -> Self {
        Self { sequence: word >> INDEX_BITS, index: (word & ((1 << INDEX_BITS) - 1)) as usize }
    }

    pub(crate) const fn to_word(self) -> u64 {
        self.sequence << INDEX_BITS | self.index as u64
    }
}

impl Place {
    /// The number where a [`Heading`] has it.
    pub(crate) const fn sequence_bits(self) -> u64 {
        self.sequence << INDEX_BITS
    }
}

/// Words from index `from` up to `to` in a ring of `words`.
pub(crate) const fn distance(from: usize, to: usize, words: usize) -> usize {
    if to >= from { to - from } else { to + words - from }
}

/// The index `by` words behind `index`.
pub(crate) const fn advance(index: usize, by: usize, words: usize) -> usize {
    let next = index + by;
    if next >= words { next - words } else { next }
}

/// A record's first word: sequence number (40 bits), bytes of text (8), bytes of the module's name (6), level (3),
/// whether the record is complete (1); the last 6 bits are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading(pub u64);

impl Heading {
    const COMPLETE: u64 = 1 << 6;

    /// Of a record that is being written.
    pub(crate) const fn new(sequence: u64, level: Level, module_bytes: usize, text_bytes: usize) -> Self {
        Self(
            sequence << (64 - SEQUENCE_BITS)
                | (text_bytes as u64) << 16
                | (module_bytes as u64) << 10
                | (level as u64) << 7,
        )
    }

    /// Of a record of `words` of which nothing else is known, and which will not be complete.
    pub(crate) fn of_unknown(sequence: u64, words: usize) -> Self {
        let bytes = words.saturating_sub(HEADING_WORDS) * 8;
        let text_bytes = bytes.min(MAXIMUM_TEXT_BYTES);
        Self::new(sequence, Level::Error, (bytes - text_bytes).min(MAXIMUM_MODULE_BYTES), text_bytes)
    }

    pub(crate) const fn completed(self) -> Self {
        Self(self.0 | Self::COMPLETE)
    }

    pub(crate) const fn is_complete(self) -> bool {
        self.0 & Self::COMPLETE != 0
    }

    pub(crate) const fn sequence(self) -> u64 {
        self.0 >> (64 - SEQUENCE_BITS)
    }

    pub(crate) const fn text_bytes(self) -> usize {
        (self.0 >> 16 & 0xff) as usize
    }

    pub(crate) const fn module_bytes(self) -> usize {
        (self.0 >> 10 & 0x3f) as usize
    }

    pub(crate) fn level(self) -> Option<Level> {
        Level::from_number((self.0 >> 7 & 7) as u8)
    }

    /// Words of the whole record.
    pub(crate) const fn words(self) -> usize {
        HEADING_WORDS + (self.module_bytes() + self.text_bytes()).div_ceil(8)
    }

    /// Returns whether a writer can have made it.
    pub(crate) fn is_possible(self) -> bool {
        self.text_bytes() <= MAXIMUM_TEXT_BYTES
            && self.module_bytes() <= MAXIMUM_MODULE_BYTES
            && self.level().is_some()
            && self.0 & 0x3f == 0
    }
}
