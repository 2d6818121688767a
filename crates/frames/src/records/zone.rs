// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of one stretch of memory.

use core::ops::Range;

use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use super::block::{Block, Content};
use super::record::{RECORD_BYTES, Record};
use crate::nodes::Node;
use crate::state::FrameState;

pub(super) const BLOCK_BYTES: u64 = PageSize::Mib2.bytes();
pub(super) const BLOCK_RECORDS: usize = (BLOCK_BYTES / PAGE_BYTES) as usize;

/// Policy for the 512 records of a 2 MiB frame that changes its owner as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tails {
    /// All of them: the baseline.
    Write,
    /// The first one only.
    Omit,
}

/// Number of records and blocks of a stretch of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Records.
    pub records: usize,
    /// Blocks of them.
    pub blocks: usize,
}

impl Shape {
    /// Returns the shape of this stretch.
    pub fn of(range: PhysRange) -> Self {
        let base = range.start().align_down(BLOCK_BYTES);
        let records = ((range.end().0 - base.0) / PAGE_BYTES) as usize;
        Self { records, blocks: records.div_ceil(BLOCK_RECORDS) }
    }

    /// Returns the number of bytes of the records, which come first.
    pub fn record_bytes(self) -> u64 {
        self.records as u64 * RECORD_BYTES
    }

    /// Returns the number of bytes of records and blocks.
    pub fn bytes(self) -> u64 {
        self.record_bytes() + self.blocks as u64
    }
}

/// A stretch of memory with its records.
#[derive(Clone, Copy, Debug)]
pub struct Zone<'m> {
    range: PhysRange,
    node: Node,
    records: &'m [Record],
    blocks: &'m [Block],
}

impl<'m> Zone<'m> {
    /// Creates a zone of the records for `range`, as many as its [`Shape`] states, with any content, and its unwritten
    /// blocks; `None` if there are too few.
    pub fn new(range: PhysRange, node: Node, records: &'m [Record], blocks: &'m [Block]) -> Option<Self> {
        let shape = Shape::of(range);
        let (records, blocks) = (records.get(..shape.records)?, blocks.get(..shape.blocks)?);
        Some(Self { range, node, records, blocks })
    }

    pub(super) fn range(&self) -> PhysRange {
        self.range
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Writes what has changed; returns how many records.
    pub(super) fn note(&self, part: PhysRange, state: FrameState, tails: Tails) -> u64 {
        let (first, end) = (self.index(part.start()), self.index(part.end()));
        let head = part.start().0 / PAGE_BYTES;
        let (mut number, last) = (first / BLOCK_RECORDS, end.div_ceil(BLOCK_RECORDS));
        let mut written = 0;
        while number < last {
            let gib_end = self.end_of_gib(number).filter(|gib_end| {
                tails == Tails::Omit && first <= number * BLOCK_RECORDS && gib_end * BLOCK_RECORDS <= end
            });
            if let Some(gib_end) = gib_end {
                written += self.note_gib(number, state, head);
                number = gib_end;
            } else {
                written += self.split_gib(number) + self.note_block(number, first..end, state, head, tails);
                number += 1;
            }
        }
        written
    }

    fn note_block(&self, number: usize, changed: Range<usize>, state: FrameState, head: u64, tails: Tails) -> u64 {
        let Some(block) = self.blocks.get(number) else { return 0 };
        let all = number * BLOCK_RECORDS..(number + 1) * BLOCK_RECORDS;
        let inside = all.start.max(changed.start)..all.end.min(changed.end);
        let before = block.claim();
        if tails == Tails::Omit && inside == all {
            let written = self.write(all.start..all.start + 1, state, head);
            block.release(Content::Whole);
            return written;
        }
        let around = match before {
            Content::Absent => Some(FrameState::Free),
            Content::Whole => self.records.get(all.start).map(Record::state),
            Content::WholeGib => Some(self.gib_state(number)),
            Content::Ready => None,
        };
        let mut written = self.write(inside.clone(), state, head);
        if let Some(around) = around {
            let head = self.frame(all.start);
            written +=
                self.write(all.start..inside.start, around, head) + self.write(inside.end..all.end, around, head);
        }
        block.release(Content::Ready);
        written
    }

    /// Writes an unwritten block, of which all is free; returns how many records.
    pub(super) fn write_absent(&self, number: usize) -> u64 {
        let Some(block) = self.blocks.get(number).filter(|block| block.claim_absent()) else { return 0 };
        let all = number * BLOCK_RECORDS..(number + 1) * BLOCK_RECORDS;
        let written = self.write(all.clone(), FrameState::Free, self.frame(all.start));
        block.release(Content::Ready);
        written
    }

    pub(super) fn write(&self, range: Range<usize>, state: FrameState, head: u64) -> u64 {
        let end = range.end.min(self.records.len());
        let records = self.records.get(range.start.min(end)..end).unwrap_or_default();
        for record in records {
            record.write(state, self.node, head);
        }
        records.len() as u64
    }

    pub(super) fn state_of(&self, address: PhysAddr) -> FrameState {
        let index = self.index(address);
        let record = |index| self.records.get(index).map_or(FrameState::Absent, Record::state);
        match self.blocks.get(index / BLOCK_RECORDS).map(Block::content) {
            Some(Content::Ready) => record(index),
            Some(Content::Whole) => record(index / BLOCK_RECORDS * BLOCK_RECORDS),
            Some(Content::WholeGib) => self.gib_state(index / BLOCK_RECORDS),
            Some(Content::Absent) => FrameState::Free,
            None => FrameState::Absent,
        }
    }

    fn index(&self, address: PhysAddr) -> usize {
        ((address.0 - self.base().0) / PAGE_BYTES) as usize
    }

    /// Returns the address that the first record is about.
    pub(super) fn base(&self) -> PhysAddr {
        self.range.start().align_down(BLOCK_BYTES)
    }

    /// Returns the number of the frame with this record.
    pub(super) fn frame(&self, index: usize) -> u64 {
        self.base().0 / PAGE_BYTES + index as u64
    }

    pub(super) fn record(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    pub(super) fn block_slice(&self, range: Range<usize>) -> &[Block] {
        self.blocks.get(range).unwrap_or_default()
    }
}
