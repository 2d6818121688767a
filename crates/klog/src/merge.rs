// SPDX-License-Identifier: MIT OR Apache-2.0
//! All CPUs' rings as one stream, in the order of time.

use crate::reader::{Cursor, Memory, Peek, Reach, Step};
use crate::record::Copied;

/// A reader of up to `RINGS` rings, numbered from 0. Each step checks every ring once: the work is bounded, and
/// nothing is allocated.
///
/// The order is that of the time stamps among the records that are complete when it looks. A record that is completed
/// later is not waited for.
#[derive(Clone, Debug)]
pub struct Merge<const RINGS: usize> {
    cursors: [Cursor; RINGS],
}

/// What [`Merge::next`] found, and in which ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// A record, copied out.
    Record {
        /// Number of the ring.
        ring: usize,
    },
    /// Records that are gone.
    Lost {
        /// Number of the ring.
        ring: usize,
        /// How many.
        records: u64,
    },
}

impl<const RINGS: usize> Merge<RINGS> {
    /// From the first record of each ring on; those that are gone by now are lost.
    pub const fn new() -> Self {
        Self { cursors: [Cursor::start(); RINGS] }
    }

    /// Returns where it stands in ring `number`.
    pub fn cursor(&self, number: usize) -> Option<Cursor> {
        self.cursors.get(number).copied()
    }

    /// Has it go on from there in ring `number`.
    pub fn set_cursor(&mut self, number: usize, cursor: Cursor) {
        if let Some(slot) = self.cursors.get_mut(number) {
            *slot = cursor;
        }
    }

    /// The next record or loss; `None` where there is nothing new. `ring_at` gives the rings by number.
    pub fn next<'r, M: Memory + 'r>(
        &mut self,
        ring_at: impl Fn(usize) -> Option<&'r M>,
        reach: Reach,
        into: &mut Copied,
    ) -> Option<Merged> {
        let ring = self.earliest(&ring_at, reach)?;
        match self.cursors[ring].next(ring_at(ring)?, reach, into) {
            Step::Record => Some(Merged::Record { ring }),
            Step::Lost(records) => Some(Merged::Lost { ring, records }),
            Step::Nothing => None,
        }
    }

    fn earliest<'r, M: Memory + 'r>(&self, ring_at: &impl Fn(usize) -> Option<&'r M>, reach: Reach) -> Option<usize> {
        let mut earliest = None;
        for (number, cursor) in self.cursors.iter().enumerate() {
            let Some(ring) = ring_at(number) else { continue };
            match cursor.peek(ring, reach) {
                Peek::First => return Some(number),
                Peek::At(ticks) if earliest.is_none_or(|(earliest, _)| ticks < earliest) => {
                    earliest = Some((ticks, number));
                }
                Peek::At(_) | Peek::Nothing => {}
            }
        }
        earliest.map(|(_, number)| number)
    }
}

impl<const RINGS: usize> Default for Merge<RINGS> {
    fn default() -> Self {
        Self::new()
    }
}
