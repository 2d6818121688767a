// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of all units' tables: pieces that outlive the image, because units go on reading them while it is
//! replaced. Each piece describes itself, so that the next image knows what in it is free.
//!
//! ```text
//! piece: │ head: magic, version, bytes; a bit per page │ page │ page │ …
//! ```
//!
//! The layout is part of the hand-over between images: another one has another [`VERSION`].

use arrayvec::ArrayVec;
use paging::TableMemory;
use units::{PAGE_BYTES, PhysAddr, PhysRange};

use crate::{Memory, Problem};

/// Pieces at most.
pub const MAX_PIECES: usize = 16;
/// The version of a piece's head.
pub const VERSION: u64 = 1;

const MAGIC: u64 = u64::from_le_bytes(*b"BatnIOMM");
const WORD_BYTES: u64 = 8;
/// Words of the head before the bits.
const BITS_AT: u64 = 3;
/// Pages that a head of one page has bits for.
const MAX_PAGES: u64 = (PAGE_BYTES / WORD_BYTES - BITS_AT) * 64;

/// Physical memory, by words of eight bytes at multiples of eight, inside of the pieces.
pub trait Words {
    /// Reads one.
    fn read(&self, at: PhysAddr) -> u64;
    /// Replaces one, in one store.
    fn write(&mut self, at: PhysAddr, value: u64);
    /// Replaces two, at a multiple of sixteen, in one access.
    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]);
    /// Stores to these bytes are in memory before it returns.
    fn write_back(&mut self, at: PhysAddr, bytes: u64);
}

/// All pieces.
#[derive(Debug)]
pub struct Store<W> {
    words: W,
    pieces: ArrayVec<PhysRange, MAX_PIECES>,
}

impl<W: Words> Store<W> {
    /// Creates a store without a piece.
    pub const fn new(words: W) -> Self {
        Self { words, pieces: ArrayVec::new_const() }
    }

    /// Returns the pieces, for the hand-over.
    pub fn pieces(&self) -> &[PhysRange] {
        &self.pieces
    }

    /// Adds a piece, which has no other owner: two pages to 126 MiB. Its content is discarded.
    ///
    /// # Errors
    /// [`Problem::OutOfMemory`] if there are too many, or if it has another size.
    pub fn add(&mut self, piece: PhysRange) -> Result<(), Problem> {
        if !is_possible(piece) || self.pieces.try_push(piece).is_err() {
            return Err(Problem::OutOfMemory);
        }
        (0..PAGE_BYTES / WORD_BYTES).for_each(|index| self.words.write(word(piece, index), 0));
        self.words.write(word(piece, 1), VERSION);
        self.words.write(word(piece, 2), piece.bytes());
        self.mark(piece, 0, 1, true);
        self.words.write(word(piece, 0), MAGIC);
        Ok(())
    }

    /// Takes over a piece that an image before this one has added.
    ///
    /// # Errors
    /// [`Problem::NotAdopted`] if it is none.
    pub fn adopt(&mut self, piece: PhysRange) -> Result<(), Problem> {
        let refuse = |reason| Err(Problem::NotAdopted { reason });
        if !is_possible(piece) {
            return refuse("a piece of the tables' memory cannot be so large");
        }
        if self.words.read(word(piece, 0)) != MAGIC || self.words.read(word(piece, 2)) != piece.bytes() {
            return refuse("a piece of the tables' memory has no head");
        }
        if self.words.read(word(piece, 1)) != VERSION {
            return refuse("a piece of the tables' memory is of another version");
        }
        match self.pieces.try_push(piece) {
            Ok(()) => Ok(()),
            Err(_) => refuse("there are too many pieces of the tables' memory"),
        }
    }

    /// Returns whether these bytes are in use in one piece.
    pub fn holds(&self, at: PhysAddr, bytes: u64) -> bool {
        let Some(range) = PhysRange::from_start(at, bytes) else { return false };
        let piece = self.pieces.iter().find(|piece| piece.contains_range(range) && at > piece.start());
        piece.is_some_and(|&piece| pages(piece, range).all(|page| self.is_used(piece, page)))
    }

    fn is_used(&self, piece: PhysRange, page: u64) -> bool {
        self.words.read(word(piece, BITS_AT + page / 64)) >> (page % 64) & 1 != 0
    }

    fn mark(&mut self, piece: PhysRange, first: u64, count: u64, is_used: bool) {
        for page in first..first + count {
            let at = word(piece, BITS_AT + page / 64);
            let bit = 1 << (page % 64);
            let bits = self.words.read(at);
            self.words.write(at, if is_used { bits | bit } else { bits & !bit });
        }
    }

    /// Returns the first free pages in a piece that are aligned as they are long.
    fn find(&self, piece: PhysRange, bytes: u64) -> Option<PhysAddr> {
        let mut at = piece.start().align_up(bytes)?;
        while PhysRange::from_start(at, bytes).is_some_and(|range| piece.contains_range(range)) {
            let range = PhysRange::from_start(at, bytes)?;
            if pages(piece, range).all(|page| !self.is_used(piece, page)) {
                return Some(at);
            }
            at = at.checked_add(bytes)?;
        }
        None
    }
}

impl<W: Words> Memory for Store<W> {
    fn allocate_piece(&mut self, bytes: u64) -> Option<PhysAddr> {
        if !bytes.is_power_of_two() || bytes < PAGE_BYTES {
            return None;
        }
        let pieces = self.pieces.clone();
        let (piece, at) = pieces.into_iter().find_map(|piece| Some((piece, self.find(piece, bytes)?)))?;
        self.mark(piece, (at.0 - piece.start().0) / PAGE_BYTES, bytes / PAGE_BYTES, true);
        (0..bytes / WORD_BYTES).for_each(|index| self.words.write(PhysAddr(at.0 + index * WORD_BYTES), 0));
        self.words.write_back(at, bytes);
        Some(at)
    }

    fn free_piece(&mut self, at: PhysAddr, bytes: u64) {
        if bytes.is_multiple_of(PAGE_BYTES) && self.holds(at, bytes) {
            let piece = self.pieces.iter().copied().find(|piece| piece.contains(at)).unwrap_or_default();
            self.mark(piece, (at.0 - piece.start().0) / PAGE_BYTES, bytes / PAGE_BYTES, false);
        }
    }

    fn read_word(&self, at: PhysAddr) -> u64 {
        if self.holds(at, WORD_BYTES) { self.words.read(at) } else { 0 }
    }

    fn write_word(&mut self, at: PhysAddr, value: u64) {
        if self.holds(at, WORD_BYTES) {
            self.words.write(at, value);
        }
    }

    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]) {
        if self.holds(at, 2 * WORD_BYTES) {
            self.words.write_pair(at, values);
        }
    }

    fn write_back(&mut self, at: PhysAddr, bytes: u64) {
        self.words.write_back(at, bytes);
    }
}

impl<W: Words> TableMemory for Store<W> {
    fn allocate(&mut self) -> Option<PhysAddr> {
        self.allocate_piece(PAGE_BYTES)
    }

    fn free(&mut self, table: PhysAddr) {
        self.free_piece(table, PAGE_BYTES);
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.read_word(PhysAddr(table.0 + (index as u64 & 511) * WORD_BYTES))
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        let at = PhysAddr(table.0 + (index as u64 & 511) * WORD_BYTES);
        self.write_word(at, entry);
        self.write_back(at, WORD_BYTES);
    }
}

fn is_possible(piece: PhysRange) -> bool {
    let pages = piece.bytes() / PAGE_BYTES;
    piece.is_aligned(PAGE_BYTES) && (2..=MAX_PAGES).contains(&pages)
}

fn word(piece: PhysRange, index: u64) -> PhysAddr {
    PhysAddr(piece.start().0 + index * WORD_BYTES)
}

/// Returns the numbers of a range's pages in its piece.
fn pages(piece: PhysRange, range: PhysRange) -> impl Iterator<Item = u64> {
    let offset = |at: PhysAddr| (at.0 - piece.start().0) / PAGE_BYTES;
    offset(range.start())..offset(PhysAddr(range.end().0 - 1)) + 1
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
