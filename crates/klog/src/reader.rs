// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading records from a ring: copied first, validated afterwards.
//!
//! A reader takes nothing from the writer, not even its time: it copies the record at its cursor, and then checks
//! whether the tail has passed that place meanwhile. If so the copy is worthless, and the records between the cursor
//! and the tail are counted as lost. Whatever is in the memory, a reader ends: each step brings its cursor nearer to
//! the head, and there are only so many attempts.

use crate::clock::Clock;
use crate::layout::*;
use crate::record::Copied;
use crate::ring::Ring;
use crate::sync::{Ordering, fence};

/// Attempts to copy a record before a writer that overtakes each of them is left alone for now.
const ATTEMPTS: usize = 4;

/// Memory that holds a ring: this image's own, or one that another has left.
pub trait Memory {
    /// Word `index` of the header, below [`HEADER_WORDS`].
    fn header(&self, index: usize) -> u64;
    /// Words of records, for this `index` below [`Self::data_words`].
    fn data(&self, index: usize) -> u64;
    /// Returns how many words of records there are.
    fn data_words(&self) -> usize;

    /// Returns the CPU that owns the ring.
    fn cpu_number(&self) -> u32 {
        (self.header(HEADER_IDENTITY) >> 32) as u32
    }

    /// Returns the conversion of its ticks to time.
    fn clock(&self) -> Clock {
        Clock { origin: self.header(HEADER_CLOCK_ORIGIN), hz: self.header(HEADER_CLOCK_HZ) }
    }

    /// The number that its next record gets: as many have been written.
    fn written(&self) -> u64 {
        Place::from_word(self.header(HEADER_HEAD)).sequence
    }
}

impl Memory for Ring<'_> {
    #[inline]
    fn header(&self, index: usize) -> u64 {
        self.header[index].load(Ordering::Relaxed)
    }

    #[inline]
    fn data(&self, index: usize) -> u64 {
        self.data[index].load(Ordering::Relaxed)
    }

    #[inline]
    fn data_words(&self) -> usize {
        self.data.len()
    }
}

/// The last record that a reader goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Up to the first record that may not be complete: for a host that lives.
    Complete,
    /// To the head, past records that their writers never completed: for the end of the host, and for rings that
    /// another image has left.
    Everything,
}

/// Position of a reader in one ring: the record that it reads next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(Place);

/// Result of [`Cursor::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record, copied out.
    Record,
    /// So many records are gone: overwritten, refused for want of room, or never completed.
    Lost(u64),
    /// Nothing new.
    Nothing,
}

/// Result of [`Cursor::peek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peek {
    /// Something that comes before any record: a loss.
    First,
    /// A record of this time.
    At(u64),
    /// Nothing new.
    Nothing,
}

impl Cursor {
    /// A cursor at record 0: records that are gone by now are counted as lost.
    pub const fn start() -> Self {
        Self(Place { sequence: 0, index: 0 })
    }

    /// The oldest record that is kept.
    pub fn oldest(ring: &impl Memory) -> Self {
        Self(Place::from_word(ring.header(HEADER_TAIL)))
    }

    /// The first record that comes from now on.
    pub fn newest(ring: &impl Memory) -> Self {
        Self(Place::from_word(ring.header(HEADER_SEEN)))
    }

    /// Record `sequence`; the oldest that is kept if that is newer, or if `sequence` is of a log that never came so
    /// far. As many steps as there are records before it.
    pub fn at(ring: &impl Memory, sequence: u64) -> Self {
        let mut cursor = Self::oldest(ring);
        let limit = Place::from_word(ring.header(HEADER_SEEN));
        if sequence > limit.sequence {
            return cursor;
        }
        // Nothing is copied and nothing believed: a cursor that was overtaken is shown this by the next step.
        while cursor.0.sequence < sequence && cursor.0.index != limit.index {
            let heading = Heading(ring.data(cursor.0.index));
            if heading.sequence() < cursor.0.sequence || !cursor.may_pass(heading, limit, ring.data_words()) {
                return Self::oldest(ring);
            }
            if heading.sequence() >= sequence {
                break;
            }
            cursor.pass(heading, ring.data_words());
        }
        Self(Place { sequence: sequence.max(cursor.0.sequence), ..cursor.0 })
    }

    /// The first record of this time or later.
    pub fn since(ring: &impl Memory, ticks: u64) -> Self {
        let mut cursor = Self::oldest(ring);
        let limit = limit(ring, Reach::Complete);
        while cursor.0.sequence < limit.sequence && cursor.0.index != limit.index {
            let heading = Heading(ring.data(cursor.0.index));
            if heading.sequence() < cursor.0.sequence || !cursor.may_pass(heading, limit, ring.data_words()) {
                return Self::oldest(ring);
            }
            if ring.data(advance(cursor.0.index, 1, ring.data_words())) >= ticks {
                break;
            }
            cursor.pass(heading, ring.data_words());
        }
        cursor
    }

    /// As one word, so that others can see it move.
    pub fn to_word(self) -> u64 {
        self.0.to_word()
    }

    /// Returns the cursor that [`Self::to_word`] made this word of.
    pub fn from_word(word: u64) -> Self {
        Self(Place::from_word(word))
    }

    /// The number of the record it wants.
    pub fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// Goes one step, and copies the record there `into` if there is one. Losses come as steps of their own, before the
    /// record behind them.
    pub fn next(&mut self, ring: &impl Memory, reach: Reach, into: &mut Copied) -> Step {
        for _ in 0..ATTEMPTS {
            let limit = limit(ring, reach);
            let tail = Place::from_word(ring.header(HEADER_TAIL));
            if self.0.sequence < tail.sequence || self.0.index >= ring.data_words() {
                return self.skip_to(tail);
            }
            if self.0.sequence >= limit.sequence {
                return Step::Nothing;
            }
            if self.0.index == limit.index {
                return self.skip_to(limit);
            }
            let heading = Heading(ring.data(self.0.index));
            copy(ring, self.0.index, heading, into);
            fence(Ordering::Acquire);
            if Place::from_word(ring.header(HEADER_TAIL)).sequence <= self.0.sequence {
                return self.judge(heading, limit, ring.data_words());
            }
        }
        Step::Nothing
    }

    /// Returns the step that [`Self::next`] will take, without a copy: it may be out of date by then.
    #[inline]
    pub(crate) fn peek(&self, ring: &impl Memory, reach: Reach) -> Peek {
        let limit = limit(ring, reach);
        if self.0.sequence >= limit.sequence {
            return Peek::Nothing;
        }
        let is_lost = Place::from_word(ring.header(HEADER_TAIL)).sequence > self.0.sequence;
        if is_lost || self.0.index == limit.index || self.0.index >= ring.data_words() {
            return Peek::First;
        }
        Peek::At(ring.data(advance(self.0.index, 1, ring.data_words())))
    }

    /// Judges a valid copy: whether it is a record, and the one that was wanted.
    fn judge(&mut self, heading: Heading, limit: Place, words: usize) -> Step {
        let is_record = (self.0.sequence..limit.sequence).contains(&heading.sequence());
        if !is_record || !heading.is_possible() || !self.may_pass(heading, limit, words) {
            // Only memory that another image has left, or a writer that stopped between two instructions, has this
            // form.
            return self.skip_to(limit);
        }
        if heading.sequence() > self.0.sequence {
            return self.skip_to(Place { sequence: heading.sequence(), ..self.0 });
        }
        self.pass(heading, words);
        if heading.is_complete() { Step::Record } else { Step::Lost(1) }
    }

    fn may_pass(&self, heading: Heading, limit: Place, words: usize) -> bool {
        heading.words() <= distance(self.0.index, limit.index, words)
    }

    fn pass(&mut self, heading: Heading, words: usize) {
        self.0 = Place { sequence: heading.sequence() + 1, index: advance(self.0.index, heading.words(), words) };
    }

    fn skip_to(&mut self, place: Place) -> Step {
        let lost = place.sequence.saturating_sub(self.0.sequence);
        self.0 = place;
        Step::Lost(lost)
    }
}

#[inline]
fn limit(ring: &impl Memory, reach: Reach) -> Place {
    let word = ring.header(match reach {
        Reach::Complete => HEADER_SEEN,
        Reach::Everything => HEADER_HEAD,
    });
    fence(Ordering::Acquire);
    Place::from_word(word)
}

/// Copies words that may be a record, at most as many as the longest record has.
fn copy(ring: &impl Memory, from: usize, heading: Heading, into: &mut Copied) {
    let words = ring.data_words();
    let mut index = advance(from, 1, words);
    into.heading = heading;
    into.ticks = ring.data(index);
    for bytes in into.bytes.chunks_exact_mut(8).take(heading.words() - HEADING_WORDS) {
        index = advance(index, 1, words);
        bytes.copy_from_slice(&ring.data(index).to_le_bytes());
    }
}
