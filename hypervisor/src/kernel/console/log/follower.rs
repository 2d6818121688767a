// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader of the log for a client that takes records with their numbers, and counts missing ones by them.

use alloc::vec::Vec;

use klog::{Copied, Cursor, Memory as _, Merge, Merged, Reach, Record};

use super::rings::{count, ring};

/// All CPUs' records, in the order of time.
pub struct Follower {
    merge: Merge<Vec<Cursor>>,
    copied: Copied,
}

impl Follower {
    /// From this time on, in ticks; 0 is the oldest record that is kept.
    pub fn since(ticks: u64) -> Self {
        let cursor = |index| ring(index).map_or(Cursor::start(), |ring| Cursor::since(ring, ticks));
        Self { merge: Merge::new((0..count()).map(cursor).collect()), copied: Copied::new() }
    }

    /// The next record, if there is one.
    pub fn next(&mut self) -> Option<Record<'_>> {
        let index = loop {
            match self.merge.next(ring, Reach::Complete, &mut self.copied)? {
                Merged::Record { ring } => break ring,
                // The number of the next record shows it.
                Merged::Lost { .. } => {}
            }
        };
        Some(self.copied.record(index as u32, ring(index)?.clock()))
    }

    /// The time of the record that came last, in ticks.
    pub fn ticks(&self) -> u64 {
        self.copied.ticks()
    }
}
