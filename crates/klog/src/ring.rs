// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU's ring, and how records get into it.
//!
//! Only its own CPU writes, but in any context: an interrupt or NMI may come between any two instructions of a writer,
//! and write a record itself. Such writers nest: the inner one is done before the outer one goes on. That is all the
//! protocol needs; no writer or reader waits for another.
//!
//! ```text
//!        tail ──────────▶ floor ─────────────▶ head
//! ┌───────┬──────────┬──────┬───────────────────┬──────────┐
//! │ free  │ complete │ compl│ outer ┆ its inner │  free    │
//! └───────┴──────────┴──────┴───────────────────┴──────────┘
//! ```
//!
//! 1. The text is formatted on the stack: whatever that calls, the ring is not involved yet.
//! 2. The oldest records make room: the tail moves. It never passes the floor, the head at the time when the outermost
//!    writer began, because records behind that may not be complete. A record that finds no room there is refused: it
//!    takes a number, and readers count it as lost like one that was overwritten.
//! 3. One compare-and-exchange moves the head: number and words are the writer's. Its time was read just before, so
//!    that times rise with the numbers. If an inner writer was faster, the exchange fails and 2 begins again.
//! 4. Heading, time and text are stored; then the heading is marked complete.
//! 5. The outermost writer publishes the head as seen: readers go so far and no further.
//!
//! Between 3 and 4 the heading is not in its place. An inner writer that comes just then puts one there, so that an
//! emergency reader, which reads past the published head, finds the way from each record to the next.

use core::fmt;

use crate::clock::Clock;
use crate::layout::*;
use crate::level::Level;
use crate::sync::{AtomicU64, Ordering, fence};
use crate::text::{LARGEST_BYTES, Text, USUAL_BYTES};

/// A CPU's ring, over memory that it describes itself. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    pub(crate) header: &'a [AtomicU64; HEADER_WORDS],
    pub(crate) data: &'a [AtomicU64],
}

/// The memory for a ring is shorter than [`MINIMUM_RING_WORDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// Words there are.
    pub words: usize,
}

impl fmt::Display for TooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} words are too few for a log ring: give it {MINIMUM_RING_WORDS} or more", self.words)
    }
}

impl core::error::Error for TooSmall {}

impl<'a> Ring<'a> {
    /// Makes an empty ring of `words`, for this CPU to write. More than [`MAXIMUM_RING_WORDS`] are left unused.
    ///
    /// # Errors
    /// [`TooSmall`]
    pub fn new(words: &'a [AtomicU64], cpu: u32, clock: Clock) -> Result<Self, TooSmall> {
        let too_small = TooSmall { words: words.len() };
        if words.len() < MINIMUM_RING_WORDS {
            return Err(too_small);
        }
        let words = &words[..words.len().min(MAXIMUM_RING_WORDS)];
        let (header, data) = words.split_first_chunk().ok_or(too_small)?;
        header.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        header[HEADER_IDENTITY].store(identity(cpu), Ordering::Relaxed);
        header[HEADER_DATA_WORDS].store(data.len() as u64, Ordering::Relaxed);
        let ring = Self { header, data };
        ring.set_clock(clock);
        header[HEADER_MAGIC].store(MAGIC, Ordering::Release);
        Ok(ring)
    }

    /// Continues the numbering of another ring's records: the next one gets this number. Only for an empty ring, before
    /// it has a reader; else it does nothing.
    pub fn count_from(&self, sequence: u64) {
        if self.header[HEADER_HEAD].load(Ordering::Relaxed) == 0 {
            let place = Place { sequence, index: 0 }.to_word();
            for index in [HEADER_FLOOR, HEADER_TAIL, HEADER_SEEN, HEADER_HEAD] {
                self.header[index].store(place, Ordering::Relaxed);
            }
        }
    }

    /// Notes that the ring's CPU has been reset and begins again: a record that it was writing will never be complete.
    /// Called by the code that starts it, before it runs.
    pub fn restart(&self) {
        if self.header[HEADER_WRITERS].load(Ordering::Relaxed) > 0 {
            self.complete_reservation();
            self.leave(0);
        }
    }

    /// Returns the CPU that owns the ring.
    pub fn cpu(&self) -> u32 {
        (self.header[HEADER_IDENTITY].load(Ordering::Relaxed) >> 32) as u32
    }

    /// Sets the conversion of its records' ticks to time. Any CPU may call it.
    pub fn set_clock(&self, clock: Clock) {
        self.header[HEADER_CLOCK_ORIGIN].store(clock.origin, Ordering::Relaxed);
        self.header[HEADER_CLOCK_HZ].store(clock.hz, Ordering::Relaxed);
    }

    /// Appends a record and gives its number, counted from 0. Called by the ring's own CPU only, in any context.
    /// Of the module's path the last part is kept; `now` reads the CPU's clock, in ticks.
    #[inline]
    pub fn write(&self, level: Level, path: &str, text: fmt::Arguments<'_>, now: impl Fn() -> u64) -> u64 {
        let mut usual = Text::<USUAL_BYTES>::new();
        usual.format(path, text);
        if usual.is_cut() { self.write_long(level, path, text, now) } else { self.append(level, &usual, now) }
    }

    #[cold]
    #[inline(never)]
    fn write_long(&self, level: Level, path: &str, text: fmt::Arguments<'_>, now: impl Fn() -> u64) -> u64 {
        let mut largest = Text::<LARGEST_BYTES>::new();
        largest.format(path, text);
        if largest.is_cut() {
            largest.mark();
        }
        self.append(level, &largest, now)
    }

    #[inline(always)]
    fn append<const BYTES: usize>(&self, level: Level, text: &Text<BYTES>, now: impl Fn() -> u64) -> u64 {
        let unnumbered = Heading::new(0, level, text.module_bytes(), text.text_bytes());
        let words = text.words();
        let outer_writers = self.enter();
        let (place, ticks, has_room) = self.reserve(HEADING_WORDS + words.len(), now);
        if has_room {
            self.fill(place, Heading(place.sequence_bits() | unnumbered.0), ticks, words);
        }
        self.leave(outer_writers);
        place.sequence
    }

    /// Begins a write; returns how many it has interrupted.
    #[inline(always)]
    fn enter(&self) -> u64 {
        let outer_writers = self.header[HEADER_WRITERS].load(Ordering::Relaxed);
        if outer_writers == 0 {
            let head = self.header[HEADER_HEAD].load(Ordering::Relaxed);
            self.header[HEADER_FLOOR].store(head, Ordering::Relaxed);
        } else {
            self.complete_reservation();
        }
        self.header[HEADER_WRITERS].store(outer_writers + 1, Ordering::Relaxed);
        outer_writers
    }

    /// Ends a write. The outermost publishes; if an inner one came between that and the end, once more.
    #[inline(always)]
    fn leave(&self, outer_writers: u64) {
        if outer_writers > 0 {
            self.header[HEADER_WRITERS].store(outer_writers, Ordering::Relaxed);
            return;
        }
        loop {
            let head = self.header[HEADER_HEAD].load(Ordering::Relaxed);
            self.header[HEADER_SEEN].store(head, Ordering::Release);
            self.header[HEADER_WRITERS].store(0, Ordering::Relaxed);
            if self.header[HEADER_HEAD].load(Ordering::Relaxed) == head {
                return;
            }
            self.header[HEADER_WRITERS].store(1, Ordering::Relaxed);
        }
    }

    /// Takes a number and `words` for the record, unless it is refused; returns where, when, and whether there was
    /// room.
    #[inline(always)]
    fn reserve(&self, words: usize, now: impl Fn() -> u64) -> (Place, u64, bool) {
        loop {
            let word = self.header[HEADER_HEAD].load(Ordering::Relaxed);
            let place = Place::from_word(word);
            let has_room = self.make_room(place, words);
            let taken = if has_room { words } else { 0 };
            let next = Place { sequence: place.sequence + 1, index: advance(place.index, taken, self.data.len()) };
            if has_room {
                self.header[HEADER_RESERVING].store(word, Ordering::Relaxed);
            }
            let ticks = now();
            let head = &self.header[HEADER_HEAD];
            if head.compare_exchange(word, next.to_word(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return (place, ticks, has_room);
            }
        }
    }

    /// Moves the tail until a record of `words` fits behind the head. One word always stays free: a full ring is not an
    /// empty one.
    #[inline(always)]
    fn make_room(&self, head: Place, words: usize) -> bool {
        loop {
            let word = self.header[HEADER_TAIL].load(Ordering::Relaxed);
            let tail = Place::from_word(word);
            if distance(tail.index, head.index, self.data.len()) + words < self.data.len() {
                return true;
            }
            let floor = Place::from_word(self.header[HEADER_FLOOR].load(Ordering::Relaxed));
            if tail.index == floor.index {
                return false;
            }
            let oldest = Heading(self.data[tail.index].load(Ordering::Relaxed));
            let index = advance(tail.index, oldest.words(), self.data.len());
            let next = Place { sequence: oldest.sequence() + 1, index };
            // It fails where an inner writer has moved the tail; then the loop goes on from there.
            let _ =
                self.header[HEADER_TAIL].compare_exchange(word, next.to_word(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn fill(&self, place: Place, heading: Heading, ticks: u64, text: &[[u8; 8]]) {
        // A reader of a word that is stored from here on sees the tail that made room for it, and knows that the word
        // has been overwritten.
        fence(Ordering::Release);
        let (before, from) = self.data.split_at(place.index.min(self.data.len()));
        if let Some(([first, time, behind @ ..], _)) = from.split_at_checked(HEADING_WORDS + text.len()) {
            first.store(heading.0, Ordering::Relaxed);
            time.store(ticks, Ordering::Relaxed);
            behind.iter().zip(text).for_each(|(place, word)| place.store(u64::from_le_bytes(*word), Ordering::Relaxed));
            first.store(heading.completed().0, Ordering::Release);
        } else {
            fill_around(from, before, heading, ticks, text);
        }
    }

    /// Puts a heading in the place that the interrupted writer has reserved, if that has not done so yet. As no writer
    /// has reserved anything since, its record ends at the head.
    #[cold]
    fn complete_reservation(&self) {
        let place = Place::from_word(self.header[HEADER_RESERVING].load(Ordering::Relaxed));
        let head = Place::from_word(self.header[HEADER_HEAD].load(Ordering::Relaxed));
        let Some(first) = self.data.get(place.index) else { return };
        if head.sequence == place.sequence + 1 && head.index != place.index {
            let heading = Heading(first.load(Ordering::Relaxed));
            let words = distance(place.index, head.index, self.data.len());
            if heading.sequence() != place.sequence || !heading.is_possible() || heading.words() != words {
                first.store(Heading::of_unknown(place.sequence, words).0, Ordering::Relaxed);
            }
        }
    }
}

/// A record that runs over the end to the beginning.
#[cold]
fn fill_around(end: &[AtomicU64], beginning: &[AtomicU64], heading: Heading, ticks: u64, text: &[[u8; 8]]) {
    let words = [heading.0, ticks].into_iter().chain(text.iter().map(|word| u64::from_le_bytes(*word)));
    end.iter().chain(beginning).zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    end.iter().take(1).for_each(|first| first.store(heading.completed().0, Ordering::Release));
}
