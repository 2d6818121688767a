// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of the records of one 2 MiB frame: how many are written, and the CPU that may write them.

use crate::sync::{AtomicU8, Ordering, pause};

/// Content of a block's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Content {
    /// Nothing yet: all its frames are free.
    Absent = 0,
    /// Every record holds.
    Ready = 1,
    /// The first record holds for all.
    Whole = 2,
    /// The first record of the 1 GiB frame holds for all.
    WholeGib = 3,
}

const BUSY: u8 = 4;

/// One block's state. Zero is "nothing written".
#[derive(Debug)]
#[repr(transparent)]
pub struct Block(AtomicU8);

impl Default for Block {
    /// Returns a block of which nothing is written.
    fn default() -> Self {
        Self(AtomicU8::new(Content::Absent as u8))
    }
}

impl Block {
    /// Takes the block for writing, in any state; waits for another writer, which only writes.
    pub(super) fn claim(&self) -> Content {
        loop {
            let now = self.content();
            if self.try_claim(now) {
                return now;
            }
        }
    }

    /// Takes the block for writing if nothing is written yet.
    pub(super) fn claim_absent(&self) -> bool {
        self.try_claim(Content::Absent)
    }

    fn try_claim(&self, from: Content) -> bool {
        self.0.compare_exchange(from as u8, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends the writer's claim.
    pub(super) fn release(&self, content: Content) {
        self.0.store(content as u8, Ordering::Release);
    }

    /// Returns what it holds; waits for a writer.
    pub(super) fn content(&self) -> Content {
        loop {
            match self.0.load(Ordering::Acquire) {
                0 => return Content::Absent,
                1 => return Content::Ready,
                2 => return Content::Whole,
                3 => return Content::WholeGib,
                _ => pause(),
            }
        }
    }
}
