// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU's ring: how records get in and out.
//!
//! A writer takes a number by one addition, and with it a place that no other code writes until the ring has gone
//! round. So it may be interrupted between any two instructions by one that records too, and two CPUs may even write
//! one ring (the boot's first moments do).
//!
//! ```text
//! writer: number ─▶ second word 0 ─▶ stamp ─▶ second word, with the number's low bits
//! reader: second word ─▶ stamp ─▶ second word again: the same, and of the number wanted, or there is no such record
//! ```
//!
//! No writer or reader waits for another. A writer that never continues leaves a hole; a reader counts it as lost.

use core::fmt;

use crate::layout::*;
use crate::name::Name;
use crate::sync::{AtomicU64, Ordering, fence};

/// Reads of a record that is just being written, before it counts as lost.
const ATTEMPTS: usize = if cfg!(test) { 1 } else { 4 };

/// A CPU's ring, over memory that it describes itself. See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    header: &'a [AtomicU64; HEADER_WORDS],
    records: &'a [[AtomicU64; RECORD_WORDS]],
}

/// The memory for a ring holds no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// Words there are.
    pub words: usize,
}

impl fmt::Display for TooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} words are too few for a timeline: give it {} or more", self.words, ring_words(1))
    }
}

impl core::error::Error for TooSmall {}

/// The reason why another image's ring cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdoptError {
    /// It does not begin as a ring does.
    NoRing,
    /// A ring of another version.
    OtherVersion,
    /// Its header speaks of more than there is.
    Damaged,
}

impl fmt::Display for AdoptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRing => "no timeline is there: a new one begins",
            Self::OtherVersion => "it is of another version: a new one begins",
            Self::Damaged => "its header is damaged: a new one begins",
        })
    }
}

impl core::error::Error for AdoptError {}

/// Words of memory that a ring of so many records (a power of two) takes.
pub const fn ring_words(records: usize) -> usize {
    HEADER_WORDS + records * RECORD_WORDS
}

impl<'a> Ring<'a> {
    /// Makes an empty ring of as many records as fit: a power of two.
    ///
    /// # Errors
    /// [`TooSmall`]
    pub fn new(words: &'a [AtomicU64], cpu: u32) -> Result<Self, TooSmall> {
        let too_small = TooSmall { words: words.len() };
        let (header, records) = words.split_first_chunk().ok_or(too_small)?;
        let (records, _) = records.as_chunks();
        let capacity = 1_usize << records.len().checked_ilog2().ok_or(too_small)?;
        header[HEADER_MAGIC].store(0, Ordering::Relaxed);
        records[..capacity].iter().for_each(|[_, second]| second.store(0, Ordering::Relaxed));
        header[HEADER_IDENTITY].store(identity(cpu), Ordering::Relaxed);
        header[HEADER_CAPACITY].store(capacity as u64, Ordering::Relaxed);
        header[HEADER_HEAD].store(0, Ordering::Relaxed);
        header[HEADER_MAGIC].store(MAGIC, Ordering::Release);
        Ok(Self { header, records: &records[..capacity] })
    }

    /// Continues a ring that a previous image has left. Whatever its words are, readers end.
    ///
    /// # Errors
    /// [`AdoptError`]; nothing has changed.
    pub fn adopt(words: &'a [AtomicU64]) -> Result<Self, AdoptError> {
        let (header, records) = words.split_first_chunk::<HEADER_WORDS>().ok_or(AdoptError::NoRing)?;
        let at = |index: usize| header[index].load(Ordering::Relaxed);
        if at(HEADER_MAGIC) != MAGIC {
            return Err(AdoptError::NoRing);
        }
        if at(HEADER_IDENTITY) as u32 != identity(0) as u32 {
            return Err(AdoptError::OtherVersion);
        }
        let (records, _) = records.as_chunks();
        let capacity = usize::try_from(at(HEADER_CAPACITY)).map_err(|_| AdoptError::Damaged)?;
        let records = records.get(..capacity).filter(|_| capacity.is_power_of_two());
        Ok(Self { header, records: records.ok_or(AdoptError::Damaged)? })
    }

    /// Returns the CPU that owns the ring.
    pub fn cpu(&self) -> u32 {
        (self.header[HEADER_IDENTITY].load(Ordering::Relaxed) >> 32) as u32
    }

    /// Records something that happens now, in any context. `now` reads the CPU's clock, in ticks.
    #[inline]
    pub fn write(&self, kind: Kind, name: Name, argument: u32, now: impl FnOnce() -> u64) {
        self.put(kind, name as u16, argument, now);
    }

    /// Appends a record of another ring's, stamp and all.
    pub fn append(&self, point: Point) {
        self.put(point.kind, point.name, point.argument, || point.ticks);
    }

    #[inline]
    fn put(&self, kind: Kind, name: u16, argument: u32, now: impl FnOnce() -> u64) {
        let number = self.header[HEADER_HEAD].fetch_add(1, Ordering::Relaxed);
        let Some([first, second]) = self.place(number) else { return };
        second.store(0, Ordering::Relaxed);
        // A reader of the stamp that is stored from here on sees that the place is no longer the old record's.
        fence(Ordering::Release);
        first.store(now(), Ordering::Relaxed);
        second.store(pack(number, kind, name, argument), Ordering::Release);
    }

    /// Returns where the record of this number is or was: there are as many places as a power of two.
    #[inline]
    fn place(&self, number: u64) -> Option<&'a [AtomicU64; RECORD_WORDS]> {
        self.records.get(number as usize & self.records.len().wrapping_sub(1))
    }

    /// The number that the next record gets: as many have been written, the overwritten ones included.
    pub fn written(&self) -> u64 {
        self.header[HEADER_HEAD].load(Ordering::Acquire)
    }

    /// The number of the oldest record that may still be there.
    pub fn oldest(&self) -> u64 {
        self.written().saturating_sub(self.records.len() as u64)
    }

    /// The record of this number; `None` if it is overwritten, was never completed, or is not yet written.
    pub fn get(&self, number: u64) -> Option<Point> {
        let [first, second] = self.place(number)?;
        (0..ATTEMPTS).find_map(|_| {
            let before = second.load(Ordering::Acquire);
            let ticks = first.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            let after = second.load(Ordering::Relaxed);
            unpack(number, ticks, before).filter(|_| before == after)
        })
    }
}
