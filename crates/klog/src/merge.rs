// SPDX-License-Identifier: MIT OR Apache-2.0
//! All CPUs' rings as one stream, in the order of time.

use crate::reader::{Cursor, Memory, Peek, Reach, Step};
use crate::record::Copied;

/// Memory for a reader's cursors, one for each ring: an array, the heap, or memory of each CPU.
pub trait Cursors {
    /// The cursor in ring `number`; `None` for the number of rings and all above it.
    fn get(&self, number: usize) -> Option<Cursor>;

    /// Moves the cursor in ring `number`; does nothing if there is no such ring.
    fn set(&mut self, number: usize, cursor: Cursor);
}

impl<T: AsRef<[Cursor]> + AsMut<[Cursor]>> Cursors for T {
    #[inline]
    fn get(&self, number: usize) -> Option<Cursor> {
        self.as_ref().get(number).copied()
    }

    fn set(&mut self, number: usize, cursor: Cursor) {
        if let Some(slot) = self.as_mut().get_mut(number) {
            *slot = cursor;
        }
    }
}

/// A reader of rings, numbered from 0. Each step checks every ring once: the work is bounded, and nothing is allocated.
///
/// The order is that of the time stamps among the records that are complete when it reads. A record that is completed
/// later is not waited for.
#[derive(Clone, Debug)]
pub struct Merge<C: Cursors> {
    cursors: C,
}

/// Result of [`Merge::next`], and its ring.
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
        /// Number of records.
        records: u64,
    },
}

impl<C: Cursors> Merge<C> {
    /// A reader that goes on at these cursors.
    pub const fn new(cursors: C) -> Self {
        Self { cursors }
    }

    /// The next record or loss; `None` where there is nothing new. `ring_at` gives the rings by number.
    pub fn next<'r, M: Memory + 'r>(
        &mut self,
        ring_at: impl Fn(usize) -> Option<&'r M>,
        reach: Reach,
        into: &mut Copied,
    ) -> Option<Merged> {
        let ring = self.earliest(&ring_at, reach)?;
        let mut cursor = self.cursors.get(ring)?;
        let step = cursor.next(ring_at(ring)?, reach, into);
        self.cursors.set(ring, cursor);
        match step {
            Step::Record => Some(Merged::Record { ring }),
            Step::Lost(records) => Some(Merged::Lost { ring, records }),
            Step::Nothing => None,
        }
    }

    fn earliest<'r, M: Memory + 'r>(&self, ring_at: &impl Fn(usize) -> Option<&'r M>, reach: Reach) -> Option<usize> {
        let mut earliest = None;
        for (number, cursor) in (0..).map_while(|number| Some((number, self.cursors.get(number)?))) {
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
