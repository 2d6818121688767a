// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for the host, and back: how the ledger's sets change.

use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use crate::error::{ClaimError, FreeError, FreeReason, OutOfMemory, TooManyExtents};
use crate::frames::{Frames, LOW_MEMORY_END};
use crate::place::places;
use crate::range::FrameRange;
use crate::state::FrameState;

impl Frames<'_> {
    /// Takes what is in use already (image, modules, tables) out of free memory: every frame that `range` touches.
    /// Parts that are not free memory are passed over. Free the memory later through [`FrameRange::adopt`].
    ///
    /// # Errors
    /// [`TooManyExtents`] if free memory cannot be cut any further; nothing is reserved then.
    pub fn reserve(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        match touched(range) {
            Some(frames) => self.take_free(frames, FrameState::Host),
            None => Ok(()),
        }
    }

    /// Allocates `bytes` (rounded up to whole frames, at least one) in one piece, its start aligned to `alignment`. The
    /// memory keeps its previous content.
    ///
    /// # Errors
    /// [`OutOfMemory`] with what is left; nothing has changed.
    pub fn allocate(&mut self, bytes: u64, alignment: PageSize) -> Result<FrameRange, OutOfMemory> {
        self.allocate_within(bytes, alignment, None)
    }

    /// Allocates for a file that is sent, as [`Frames::allocate`] does: half of what is left to the host stays free.
    ///
    /// # Errors
    /// [`OutOfMemory`] with what is left; nothing has changed.
    pub fn allocate_for_file(&mut self, bytes: u64, alignment: PageSize) -> Result<FrameRange, OutOfMemory> {
        match self.free.bytes().saturating_sub(self.host_bytes / 2) >= bytes {
            true => self.allocate(bytes, alignment),
            false => Err(self.out_of_memory(bytes, alignment, None)),
        }
    }

    /// Allocates as [`Frames::allocate`] does, but wholly below `limit`: the page where CPUs start lies below
    /// 1 MiB, what a 32-bit device reaches below 4 GiB.
    ///
    /// # Errors
    /// [`OutOfMemory`] with what is left; nothing has changed.
    pub fn allocate_below(
        &mut self,
        bytes: u64,
        alignment: PageSize,
        limit: PhysAddr,
    ) -> Result<FrameRange, OutOfMemory> {
        self.allocate_within(bytes, alignment, Some(limit))
    }

    fn allocate_within(
        &mut self,
        bytes: u64,
        alignment: PageSize,
        limit: Option<PhysAddr>,
    ) -> Result<FrameRange, OutOfMemory> {
        let end = limit.unwrap_or(PhysAddr(u64::MAX));
        [LOW_MEMORY_END, PhysAddr(0)]
            .into_iter()
            .find_map(|from| self.allocate_in(bytes, alignment, PhysRange::new(from, end)?))
            .ok_or_else(|| self.out_of_memory(bytes, alignment, limit))
    }

    /// Allocates whole frames, inside `near` if there is room.
    ///
    /// # Errors
    /// [`OutOfMemory`] with what is left; nothing has changed.
    pub fn allocate_near(&mut self, bytes: u64, near: PhysRange) -> Result<FrameRange, OutOfMemory> {
        let high = PhysRange::new(near.start().max(LOW_MEMORY_END), near.end());
        let inside = high.and_then(|near| self.allocate_in(bytes, PageSize::Kib4, near));
        inside.map_or_else(|| self.allocate(bytes, PageSize::Kib4), Ok)
    }

    /// Allocates exactly `range`.
    ///
    /// # Errors
    /// Refused whole unless all of it is free.
    pub fn claim(&mut self, range: PhysRange) -> Result<FrameRange, ClaimError> {
        let owned = FrameRange::adopt(range).ok_or(ClaimError::Misaligned(range))?;
        if !self.free.contains(range) {
            return Err(ClaimError::NotFree(range));
        }
        self.take_free(range, FrameState::Host).map_err(ClaimError::TooManyExtents)?;
        Ok(owned)
    }

    /// Frees memory and joins it with free memory beside it. Frames that were retired meanwhile stay out.
    ///
    /// # Errors
    /// [`FreeError`] gives the memory back, with the reason: free already, never added, or too scattered.
    pub fn free(&mut self, range: FrameRange) -> Result<(), FreeError> {
        let whole = range.range();
        let nobodys = [&self.free, &self.huge_free, &self.scrubbing];
        let twice = nobodys.into_iter().find_map(|set| set.overlap(whole));
        let reason = if let Some(part) = twice {
            FreeReason::FreeAlready(part)
        } else if !self.memory.contains(whole) {
            FreeReason::NeverAdded
        } else if let Err(error) = self.put_back(whole) {
            FreeReason::TooManyExtents(error)
        } else {
            return Ok(());
        };
        Err(FreeError { range, reason })
    }

    /// Returns the best place inside `window`. One that would split an extent when there is no extent left for the
    /// second half is passed over in favour of the next best.
    pub(crate) fn allocate_in(&mut self, bytes: u64, alignment: PageSize, window: PhysRange) -> Option<FrameRange> {
        let mut refused = None;
        loop {
            let places = self.free.iter().flat_map(|extent| places(extent, window, bytes, alignment));
            let best = places.filter(|place| refused.as_ref().is_none_or(|refused| place > refused)).min()?;
            if self.take_free(best.range, FrameState::Host).is_ok() {
                return Some(FrameRange::new(best.range));
            }
            refused = Some(best);
        }
    }

    /// Takes the parts of `range` that are free for any owner. Their content counts as unknown from then on.
    pub(crate) fn take_free(&mut self, range: PhysRange, state: FrameState) -> Result<(), TooManyExtents> {
        self.record_free_parts(range, state);
        if let Err(error) = self.free.remove(range) {
            self.record_free_parts(range, FrameState::Free);
            return Err(error);
        }
        self.clean.discard(range);
        self.tainted.discard(range);
        Ok(())
    }

    /// Returns every part of `range` to the set that has it while it has no owner: all of it, or nothing.
    pub(crate) fn put_back(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        let result = self.insert_parts(range);
        if result.is_err() {
            // The inserted parts were not there before: removing them restores the previous state.
            let _ = self.free.remove(range);
            let _ = self.huge_free.remove(range);
        } else {
            self.guests.discard(range);
            self.record_free(range);
        }
        result
    }

    fn insert_parts(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        for (part, is_retired) in self.retired.parts(range) {
            if is_retired {
                continue;
            }
            for (part, is_huge) in self.huge.parts(part) {
                let set = if is_huge { &mut self.huge_free } else { &mut self.free };
                set.insert(part)?;
            }
        }
        Ok(())
    }

    /// The memory that guests could have: without what is left to the host.
    pub(crate) fn out_of_memory_for_guests(&self, bytes: u64, alignment: PageSize) -> OutOfMemory {
        let (error, free_bytes) = (self.out_of_memory(bytes, alignment, None), self.free_for_guests_bytes());
        OutOfMemory { free_bytes, largest_bytes: error.largest_bytes.min(free_bytes), ..error }
    }

    pub(crate) fn out_of_memory(&self, bytes: u64, alignment: PageSize, limit: Option<PhysAddr>) -> OutOfMemory {
        let largest_bytes = self.largest_extent().map_or(0, PhysRange::bytes);
        OutOfMemory { bytes, alignment, limit, free_bytes: self.free_bytes(), largest_bytes }
    }
}

/// Returns every frame that `range` touches; `None` if it is empty.
pub(crate) fn touched(range: PhysRange) -> Option<PhysRange> {
    let end = range.end().align_up(PAGE_BYTES).unwrap_or(PhysAddr(!(PAGE_BYTES - 1)));
    PhysRange::new(range.start().align_down(PAGE_BYTES), end).filter(|_| !range.is_empty())
}
