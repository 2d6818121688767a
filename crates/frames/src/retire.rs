// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged memory: never handed out again.

use units::PhysRange;

use crate::allocate::touched;
use crate::error::TooManyExtents;
use crate::frames::Frames;
use crate::state::FrameState;

impl<'m> Frames<'m> {
    /// Retires every frame that `range` touches: a free one at once, an owned one when it is freed. Ranges
    /// without memory are skipped. Returns how many more bytes of memory are retired by this.
    ///
    /// # Errors
    /// [`TooManyExtents`] if no slot is free for more extents; nothing is retired then.
    pub fn retire(&mut self, range: PhysRange) -> Result<u64, TooManyExtents> {
        let Some(range) = touched(range) else { return Ok(0) };
        let before = self.retired.bytes();
        // All of it that is memory, extent by extent: an extent stays the same while the retired are noted.
        let mut at = range;
        while let Some(part) = self.memory.overlap(at) {
            self.retire_memory(part)?;
            match PhysRange::new(part.end(), range.end()) {
                Some(rest) => at = rest,
                None => break,
            }
        }
        Ok(self.retired.bytes() - before)
    }

    fn retire_memory(&mut self, part: PhysRange) -> Result<(), TooManyExtents> {
        // Each set grows by one extent at most: with room for that, nothing below fails.
        for set in [&self.retired, &self.free, &self.huge_free, &self.scrubbing] {
            set.has_room()?;
        }
        self.retired.add(part)?;
        self.free.remove(part)?;
        self.huge_free.remove(part)?;
        self.scrubbing.remove(part)?;
        self.clean.discard(part);
        self.tainted.discard(part);
        self.record(part, FrameState::Retired);
        Ok(())
    }

    /// Returns the number of bytes that are retired, owned still or not.
    pub fn retired_bytes(&self) -> u64 {
        self.retired.bytes()
    }
}
