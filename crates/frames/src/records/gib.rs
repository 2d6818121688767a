// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of 1 GiB that are kept whole: one record for 512 blocks, until one of them changes hands by itself.

use units::PageSize;

use super::block::{Block, Content};
use super::record::Record;
use super::zone::{BLOCK_BYTES, BLOCK_RECORDS, Zone};
use crate::state::FrameState;

/// Blocks of a 1 GiB frame.
const GIB_BLOCKS: usize = (PageSize::Gib1.bytes() / BLOCK_BYTES) as usize;

impl Zone<'_> {
    /// Returns the first block of the 1 GiB frame that this block is in, if the zone has all of it.
    fn gib_of(&self, number: usize) -> Option<usize> {
        let first_block = (self.base().0 / BLOCK_BYTES) as usize;
        let first = number.checked_sub((first_block + number) % GIB_BLOCKS)?;
        (first + GIB_BLOCKS <= self.blocks()).then_some(first)
    }

    /// Returns the end of the 1 GiB frame that begins with this block; `None` if none does.
    pub(super) fn end_of_gib(&self, number: usize) -> Option<usize> {
        self.gib_of(number).filter(|first| *first == number).map(|first| first + GIB_BLOCKS)
    }

    /// Notes that the 1 GiB frame that begins with this block has changed hands as a whole; returns how many records
    /// were written.
    pub(super) fn note_gib(&self, first: usize, state: FrameState, head: u64) -> u64 {
        let blocks = self.block_slice(first..first + GIB_BLOCKS);
        let mut written = 0;
        for (offset, block) in blocks.iter().enumerate() {
            block.claim();
            if offset == 0 {
                written = self.write(first * BLOCK_RECORDS..first * BLOCK_RECORDS + 1, state, head);
            }
            block.release(Content::WholeGib);
        }
        written
    }

    /// Splits a huge frame before a block changes hands by itself: if it is part of a whole 1 GiB frame, each of that
    /// one's 2 MiB frames gets a first record. Returns how many were written.
    pub(super) fn split_gib(&self, number: usize) -> u64 {
        let is_part = |block: &Block| block.content() == Content::WholeGib;
        let (Some(first), true) = (self.gib_of(number), self.block_slice(number..number + 1).iter().all(is_part))
        else {
            return 0;
        };
        let (state, head) = (self.gib_state(first), self.frame(first * BLOCK_RECORDS));
        let mut written = 0;
        for (offset, block) in self.block_slice(first..first + GIB_BLOCKS).iter().enumerate() {
            block.claim();
            let record = (first + offset) * BLOCK_RECORDS;
            written += self.write(record..record + 1, state, head);
            block.release(Content::Whole);
        }
        written
    }

    /// Returns the owner of the 1 GiB frame that this block is in.
    pub(super) fn gib_state(&self, number: usize) -> FrameState {
        let first = self.gib_of(number).unwrap_or(number);
        self.record(first * BLOCK_RECORDS).map_or(FrameState::Absent, Record::state)
    }
}
