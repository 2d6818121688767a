// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of the race for a block: its first change of hands against the CPU that writes what was deferred.

use loom::model;
use loom::sync::Arc;
use loom::thread;
use std::vec::Vec;

use super::block::{Block, Content};
use super::record::Record;
use crate::state::FrameState;

const NODE: u8 = 1;
const HEAD: u64 = 7;

/// A block of two frames, as a zone writes it.
struct Pair {
    block: Block,
    records: [Record; 2],
}

impl Pair {
    fn new() -> Arc<Self> {
        Arc::new(Self { block: Block::default(), records: [Record::default(), Record::default()] })
    }

    /// The first frame changes hands; the other is as it was.
    fn note_first(&self, state: FrameState) -> Content {
        let before = self.block.claim();
        self.records[0].write(state, NODE, HEAD);
        if before == Content::Absent {
            self.records[1].write(FrameState::Free, NODE, 0);
        }
        self.block.release(Content::Ready);
        before
    }

    /// Writes the block as an idle CPU, if it is not written; returns whether it was written here.
    fn write_absent(&self) -> bool {
        let is_mine = self.block.claim_absent();
        if is_mine {
            self.records.iter().for_each(|record| record.write(FrameState::Free, NODE, 0));
            self.block.release(Content::Ready);
        }
        is_mine
    }

    fn states(&self) -> [FrameState; 2] {
        [self.records[0].state(), self.records[1].state()]
    }
}

#[test]
fn a_first_change_of_hands_is_never_overwritten_by_deferred_writing() {
    model(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let writer = thread::spawn(move || other.write_absent());
        let before = pair.note_first(FrameState::Guest);
        let is_written = writer.join().unwrap();
        assert_eq!(is_written, before == Content::Ready, "each block is first written once");
        assert_eq!(pair.states(), [FrameState::Guest, FrameState::Free]);
        assert_eq!(pair.records[0].head(), HEAD);
    });
}

#[test]
fn of_several_who_would_write_a_block_one_does() {
    model(|| {
        let block = Arc::new(Block::default());
        let claim = |block: &Block| {
            let is_mine = block.claim_absent();
            if is_mine {
                block.release(Content::Ready);
            }
            usize::from(is_mine)
        };
        let writers: Vec<_> = (0..2).map(|_| block.clone()).map(|block| thread::spawn(move || claim(&block))).collect();
        let before = block.claim();
        block.release(Content::Whole);
        let written: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        assert_eq!(written + usize::from(before == Content::Absent), 1);
        assert_eq!(block.content(), Content::Whole);
    });
}

#[test]
fn a_reader_that_finds_a_block_ready_finds_all_of_it() {
    model(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let writer = thread::spawn(move || other.write_absent());
        if pair.block.content() == Content::Ready {
            assert_eq!(pair.states(), [FrameState::Free; 2]);
            assert_eq!(pair.records[1].head(), 0);
        }
        writer.join().unwrap();
    });
}
