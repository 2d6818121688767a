// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that a server has acknowledged and not made stable, in the order in which they were sent.
//!
//! An entry counts until a flush is answered that was sent after its own answer. Entries are written again in their
//! order, each once the one before is answered: of those that overlap the last one remains. The room of an entry is
//! free once those before it are unused.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

use crate::limits::{JOURNAL_BYTES, JOURNAL_WRITES};
use crate::request::Command;

/// The state of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is unanswered.
    Unanswered,
    /// It is answered: the flush with this number, or a later one, makes it stable.
    Answered(u64),
    /// It is stable, has failed, or is sent again: its entry is unused.
    Dead,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub command: Command,
    pub offset: u64,
    pub bytes: u32,
    pub kept: Kept,
    /// The start of its data.
    at: usize,
}

impl Entry {
    /// Returns its bytes in the journal: zeroes need none.
    pub fn data_bytes(&self) -> usize {
        if self.command == Command::Write { self.bytes as usize } else { 0 }
    }
}

/// The journal.
#[derive(Clone, Debug)]
pub struct Journal {
    data: Box<[u8]>,
    /// The start of the next entry's data, and the bytes in use before it.
    end: usize,
    used: usize,
    entries: VecDeque<Entry>,
    /// The number of the first entry.
    first: u64,
    /// The entry that is written again next.
    again: Option<u64>,
}

impl Journal {
    pub fn new() -> Self {
        let entries = VecDeque::with_capacity(JOURNAL_WRITES);
        Self { data: vec![0; JOURNAL_BYTES].into(), end: 0, used: 0, entries, first: 0, again: None }
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(self.index(number)?)
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    /// Adds a change; `None` if there is no room until a flush is answered.
    pub fn add(&mut self, command: Command, offset: u64, bytes: u32) -> Option<u64> {
        let entry = Entry { command, offset, bytes, kept: Kept::Unanswered, at: self.end };
        let needed = entry.data_bytes();
        if self.entries.len() == JOURNAL_WRITES || needed > JOURNAL_BYTES - self.used {
            return None;
        }
        self.entries.push_back(entry);
        self.used += needed;
        self.end = (self.end + needed) % JOURNAL_BYTES;
        Some(self.first + self.entries.len() as u64 - 1)
    }

    /// Returns data of an entry from a byte on, as far as it is in one piece.
    pub fn data(&mut self, number: u64, at: u32) -> &mut [u8] {
        let Some(entry) = self.entry(number) else { return &mut [] };
        let left = entry.data_bytes().saturating_sub(at as usize);
        let from = (entry.at + at as usize) % JOURNAL_BYTES;
        let most = left.min(JOURNAL_BYTES - from);
        &mut self.data[from..from + most]
    }

    /// Returns all data of an entry.
    pub fn pieces(&self, entry: &Entry) -> [&[u8]; 2] {
        let bytes = entry.data_bytes();
        let most = bytes.min(JOURNAL_BYTES - entry.at);
        [&self.data[entry.at..entry.at + most], &self.data[..bytes - most]]
    }

    /// Sets what is known of an entry.
    pub fn set(&mut self, number: u64, kept: Kept) {
        if let Some(entry) = self.index(number).and_then(|index| self.entries.get_mut(index)) {
            entry.kept = kept;
        }
        self.shrink();
    }

    /// Notes that the flush with this number is answered.
    pub fn flushed(&mut self, flush: u64) {
        for entry in &mut self.entries {
            if matches!(entry.kept, Kept::Answered(by) if by <= flush) {
                entry.kept = Kept::Dead;
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        while let Some(entry) = self.entries.front().filter(|entry| entry.kept == Kept::Dead) {
            self.used -= entry.data_bytes();
            self.first += 1;
            self.entries.pop_front();
        }
    }

    /// Returns whether there are changes that no flush up to this one makes stable, and another one would.
    pub fn wants_flush_after(&self, flush: u64) -> bool {
        self.entries.iter().any(|entry| matches!(entry.kept, Kept::Answered(by) if by > flush))
    }

    /// Returns whether it is so full that a flush is due.
    pub fn is_filling(&self) -> bool {
        self.used > JOURNAL_BYTES / 2 || self.entries.len() > JOURNAL_WRITES / 2
    }

    /// Prepares for the next connection: answered entries are written again on the next one, and the others are sent
    /// again by those that wait for them.
    pub fn restart(&mut self) {
        for entry in &mut self.entries {
            if entry.kept == Kept::Unanswered {
                entry.kept = Kept::Dead;
            }
        }
        self.shrink();
        self.again = (!self.entries.is_empty()).then_some(self.first);
    }

    /// Returns the entry that is to be written again now; `None` if there is none.
    pub fn again(&mut self) -> Option<(u64, Entry)> {
        let mut number = self.again.take()?.max(self.first);
        while let Some(entry) = self.entry(number).copied() {
            if entry.kept != Kept::Dead {
                self.again = Some(number);
                return Some((number, entry));
            }
            number += 1;
        }
        None
    }

    /// Notes that an entry is written again: this flush makes it stable.
    pub fn written_again(&mut self, number: u64, flush: u64) {
        self.again = Some(number + 1);
        self.set(number, Kept::Answered(flush));
    }
}
