// SPDX-License-Identifier: MIT OR Apache-2.0
//! A record per frame, as in kernels that find frames by their address: the baseline that extents are measured
//! against.
//!
//! Records are managed in *blocks* of 512, those of a 2 MiB frame. A block is written when one of its frames first
//! changes hands, or by the one that has time ([`Records::write_some`]), whichever comes first; before that all its
//! frames are free. Where huge frames are kept whole ([`Tails::Omit`]), a 2 MiB frame that changes hands as a whole has
//! its first record written and no other, until it is split; likewise one of 1 GiB.
//!
//! ```text
//!             note (part)            note (whole, tails omitted)
//!  Absent ──────────────▶ Ready ◀──────────────────────────────▶ Whole
//!    └── write_some ────────┘          (through Busy: one writer at a time)
//! ```

mod block;
mod gib;
mod record;
mod zone;

pub use block::Block;
pub use record::{RECORD_BYTES, Record};
pub use zone::{Shape, Tails, Zone};

use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU64 as Counter, Ordering};
use units::{PhysAddr, PhysRange};

use crate::state::FrameState;

/// Stretches of memory that records are kept for.
pub const MAXIMUM_ZONES: usize = 48;
/// Blocks that are written before it is checked whether there is something else to do: 1 MiB of records.
const BLOCKS_AT_A_TIME: u64 = 32;

/// Every frame's record. Shared by all CPUs; notes are made by the holder of the ledger.
#[derive(Debug)]
pub struct Records<'m> {
    zones: ArrayVec<Zone<'m>, MAXIMUM_ZONES>,
    tails: Tails,
    /// The next block that [`Records::write_some`] checks, counted over all zones.
    next: Counter,
    /// Blocks that it has checked.
    done: Counter,
    written: Counter,
}

/// Progress of writing the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Call again.
    More,
    /// Every block has a writer.
    Done,
    /// Every block is written: reported once, to the CPU that finished last.
    Finished,
}

impl<'m> Records<'m> {
    /// Records for these stretches of memory, all of it free, none written yet.
    pub fn new(zones: ArrayVec<Zone<'m>, MAXIMUM_ZONES>, tails: Tails) -> Self {
        let blocks = zones.iter().map(|zone| zone.blocks() as u64).sum();
        Self { zones, tails, next: Counter::new(0), done: Counter::new(0), written: Counter::new(blocks) }
    }

    /// Notes that `range` has changed hands. Waits for the CPU that is writing one of its blocks at that moment. One
    /// CPU at a time: the holder of the ledger.
    pub fn note(&self, range: PhysRange, state: FrameState) {
        for zone in &self.zones {
            if let Some(part) = zone.range().intersection(range) {
                self.count(zone.note(part, state, self.tails));
            }
        }
    }

    /// Writes blocks that no CPU has written yet, a few at a time. Any CPU, at any time.
    pub fn write_some(&self) -> Progress {
        let total = self.blocks();
        if self.next.load(Ordering::Relaxed) >= total {
            return Progress::Done;
        }
        let first = self.next.fetch_add(BLOCKS_AT_A_TIME, Ordering::Relaxed);
        let end = total.min(first.saturating_add(BLOCKS_AT_A_TIME));
        (first..end).for_each(|number| self.count(self.write_block(number)));
        let checked = end.saturating_sub(first);
        match self.done.fetch_add(checked, Ordering::AcqRel) + checked == total && checked > 0 {
            true => Progress::Finished,
            false => Progress::More,
        }
    }

    fn write_block(&self, mut number: u64) -> u64 {
        for zone in &self.zones {
            match number.checked_sub(zone.blocks() as u64) {
                Some(rest) => number = rest,
                None => return zone.write_absent(number as usize),
            }
        }
        0
    }

    /// Returns how many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.zones.iter().map(|zone| zone.blocks() as u64).sum()
    }

    /// Returns the owner of the frame at `address`, by its record; `None` if it has none. Waits for the CPU that is
    /// writing it.
    pub fn state_of(&self, address: PhysAddr) -> Option<FrameState> {
        self.zones.iter().find(|zone| zone.range().contains(address)).map(|zone| zone.state_of(address))
    }

    /// Returns the number of bytes of records and of blocks' states that have been written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn count(&self, records: u64) {
        if records > 0 {
            self.written.fetch_add(records * RECORD_BYTES, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
