// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that guests have left: cleaned a piece at a time by an idle CPU, so that the next guest need not wait for
//! it.
//!
//! A piece that is being cleaned is in no set: it cannot be given out, so no owner's bytes are overwritten. Memory that
//! was never a guest's is not touched: a machine's memory may be far more than its guests will use.

use units::{PAGE_BYTES, PhysRange};

use crate::frames::Frames;

/// Memory to be cleared by the owner of this value, and given back by [`Frames::end_scrub`]. Dropping it loses the
/// memory.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "dropping it loses the memory: clear it and give it to Frames::end_scrub"]
pub struct ScrubPiece(PhysRange);

impl ScrubPiece {
    /// Returns what is to be cleared.
    pub fn range(&self) -> PhysRange {
        self.0
    }
}

impl<'m> Frames<'m> {
    /// Takes the next piece to be cleaned, at most `most_bytes`; `None` if there is none.
    pub fn begin_scrub(&mut self, most_bytes: u64) -> Option<ScrubPiece> {
        let most = most_bytes.max(PAGE_BYTES) & !(PAGE_BYTES - 1);
        loop {
            let first = self.tainted.iter().next()?;
            let piece = PhysRange::from_start(first.start(), first.bytes().min(most))?;
            self.tainted.discard(piece);
            let free = [&self.free, &self.huge_free].into_iter().find_map(|set| set.overlap(piece));
            let Some(piece) = free.filter(|free| *free == piece) else { continue };
            let set = if self.free.contains(piece) { &mut self.free } else { &mut self.huge_free };
            self.scrubbing.insert(piece).ok()?;
            match set.remove(piece) {
                Ok(()) => return Some(ScrubPiece(piece)),
                Err(_) => self.scrubbing.discard(piece),
            }
        }
    }

    /// Takes a piece back that holds nothing but zeros now.
    ///
    /// # Errors
    /// The piece, while free memory is too scattered to take it: try again later.
    pub fn end_scrub(&mut self, piece: ScrubPiece) -> Result<(), ScrubPiece> {
        if self.put_back(piece.0).is_err() {
            return Err(piece);
        }
        self.scrubbing.discard(piece.0);
        for (part, is_retired) in self.retired.parts(piece.0) {
            if !is_retired {
                self.clean.note(part);
            }
        }
        Ok(())
    }

    /// Returns whether pieces are out: what is free is not all to be had at this moment.
    pub fn is_scrubbing(&self) -> bool {
        self.scrubbing.iter().next().is_some()
    }

    /// Returns the number of bytes that guests have left and that are not cleaned yet.
    pub fn tainted_bytes(&self) -> u64 {
        self.tainted.bytes()
    }

    /// Returns the number of bytes that are known to hold zeros.
    pub fn clean_bytes(&self) -> u64 {
        self.clean.bytes()
    }
}
