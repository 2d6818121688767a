// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for guests: huge frames first, on one node, clean where there is some; and what becomes of it afterwards.

use arrayvec::ArrayVec;
use units::{GIB, PageSize, PhysAddr, PhysRange};

use crate::error::{FreeError, OutOfMemory, TooManyExtents};
use crate::extents::Extents;
use crate::frames::{Frames, LOW_MEMORY_END, MAXIMUM_EXTENTS};
use crate::nodes::Node;
use crate::place::{Place, places};
use crate::range::FrameRange;
use crate::state::FrameState;

/// Parts that a guest's memory is listed in for clearing; clean parts in between count as dirty beyond that.
pub const MAXIMUM_DIRTY_PARTS: usize = 8;
/// Set-aside memory comes from above this address while there is some: below it is the memory that 32 bits reach,
/// which the host needs.
const SCARCE_MEMORY_END: PhysAddr = PhysAddr(4 * GIB);

/// Memory for a guest.
#[derive(Debug, PartialEq, Eq)]
pub struct GuestFrames {
    /// Range that the guest owns from now on.
    pub range: FrameRange,
    /// The parts of it that may not be zero: to be cleared before the guest sees them.
    pub dirty: ArrayVec<PhysRange, MAXIMUM_DIRTY_PARTS>,
}

/// Huge frames that were asked for and could not be set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugeShortage {
    /// Of this size.
    pub size: PageSize,
    /// Number of frames that were requested.
    pub wanted: u64,
    /// Number of frames that are reserved.
    pub reserved: u64,
}

impl core::fmt::Display for HugeShortage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { size, wanted, reserved } = self;
        write!(f, "{reserved} of {wanted} huge frames of {size} are set aside: no more memory is free in such pieces")
    }
}

impl core::error::Error for HugeShortage {}

impl<'m> Frames<'m> {
    /// Sets `wanted` frames of `size` aside for guests, the same number on each node as far as there are, leaving
    /// `left_bytes` of other memory free.
    ///
    /// # Errors
    /// [`HugeShortage`] if there are fewer; those there are have been set aside.
    pub fn set_aside(&mut self, size: PageSize, wanted: u64, left_bytes: u64) -> Result<(), HugeShortage> {
        let spare = self.free.bytes().saturating_sub(left_bytes) / size.bytes();
        let mut missing = wanted.min(spare);
        let nodes = self.nodes.clone();
        let count = nodes.count().max(1) as u64;
        for node in 0..count {
            let mut share = missing / (count - node);
            for range in nodes.ranges().iter().rev().filter(|range| u64::from(range.node) == node) {
                let got = self.set_aside_in(size, share, range.range);
                share -= got;
                missing -= got;
            }
        }
        let everywhere = PhysRange::new(LOW_MEMORY_END, PhysAddr(u64::MAX)).unwrap_or_default();
        missing -= self.set_aside_in(size, missing, everywhere);
        let reserved = wanted.min(spare) - missing;
        if reserved == wanted { Ok(()) } else { Err(HugeShortage { size, wanted, reserved }) }
    }

    /// Sets at most `wanted` frames aside inside `window`, in runs as long as there are; returns how many.
    fn set_aside_in(&mut self, size: PageSize, wanted: u64, window: PhysRange) -> u64 {
        let high = PhysRange::new(window.start().max(SCARCE_MEMORY_END), window.end());
        let mut missing = wanted;
        for window in high.into_iter().chain([window]) {
            let mut run = missing;
            while run > 0 && missing > 0 {
                match self.allocate_in(run * size.bytes(), size, window).map(FrameRange::leak) {
                    Some(range) if self.keep_aside(range) => missing -= run,
                    Some(range) => _ = self.put_back(range),
                    None => {}
                }
                run = if missing < run { missing } else { run / 2 };
            }
        }
        wanted - missing
    }

    fn keep_aside(&mut self, range: PhysRange) -> bool {
        if self.huge.insert(range).is_err() {
            return false;
        }
        if self.huge_free.insert(range).is_err() {
            let _ = self.huge.remove(range);
            return false;
        }
        self.record(range, FrameState::FreeHuge);
        true
    }

    /// Allocates memory for a guest, in one piece: preferably on `node`, set aside for guests, in few huge frames, and
    /// clean.
    ///
    /// # Errors
    /// [`OutOfMemory`] with what is left; nothing has changed.
    pub fn allocate_for_guest(
        &mut self,
        bytes: u64,
        alignment: PageSize,
        node: Option<Node>,
    ) -> Result<GuestFrames, OutOfMemory> {
        let mut refused = [None, None];
        loop {
            let set_aside = self.best_place(&self.huge_free, LOW_MEMORY_END, bytes, alignment, node, refused[0]);
            let other = self.best_other_place(bytes, alignment, node, refused[1]);
            let nearer =
                |place: &Place, other: Option<Place>| other.is_none_or(|other| place.distance <= other.distance);
            let (place, kind) = match (set_aside, other) {
                (Some(place), other) if nearer(&place, other) => (place, 0),
                (_, Some(place)) => (place, 1),
                _ => return Err(self.out_of_memory_for_guests(bytes, alignment)),
            };
            match self.give_to_guest(place.range, kind == 0) {
                Some(frames) => return Ok(frames),
                None => refused[kind] = Some(place),
            }
        }
    }

    /// Returns the best place for a guest in memory that is not set aside, after those that were refused. Memory that
    /// 32 bits reach is last of those as near, and some of it is left to the host.
    fn best_other_place(
        &self,
        bytes: u64,
        alignment: PageSize,
        node: Option<Node>,
        refused: Option<Place>,
    ) -> Option<Place> {
        let best = |from| self.best_place(&self.free, from, bytes, alignment, node, refused);
        let is_spare = self.scarce_bytes().saturating_sub(self.host_bytes) >= bytes;
        let (high, low) = (best(SCARCE_MEMORY_END), is_spare.then(|| best(LOW_MEMORY_END)).flatten());
        match (high, low) {
            (Some(high), Some(low)) => Some(if low.distance < high.distance { low } else { high }),
            (high, low) => high.or(low),
        }
    }

    /// Returns the bytes of memory without an owner that 32 bits reach.
    fn scarce_bytes(&self) -> u64 {
        let scarce = PhysRange::new(PhysAddr(0), SCARCE_MEMORY_END).unwrap_or_default();
        self.free.iter().filter_map(|extent| extent.intersection(scarce)).map(PhysRange::bytes).sum()
    }

    /// Returns how many bytes without an owner guests may have.
    pub fn free_for_guests_bytes(&self) -> u64 {
        self.free_bytes() - self.scarce_bytes().min(self.host_bytes)
    }

    /// Returns whether guests may leave memory in small parts: half of the extents remain for memory that is taken.
    pub fn may_be_parted(&self) -> bool {
        self.free.count().max(self.guests.count()) < MAXIMUM_EXTENTS / 2
    }

    /// Returns the best place for a guest in a set, from this address on, after those that were refused.
    fn best_place(
        &self,
        set: &Extents<'m>,
        from: PhysAddr,
        bytes: u64,
        alignment: PageSize,
        node: Option<Node>,
        refused: Option<Place>,
    ) -> Option<Place> {
        let all = PhysRange::new(from, PhysAddr(u64::MAX))?;
        let nodes = self.nodes.ranges().iter().map(|known| known.range);
        let mut best: Option<Place> = None;
        for window in nodes.chain(self.clean.iter()).chain([all]).filter_map(|window| window.intersection(all)) {
            for place in set.iter().flat_map(|extent| places(extent, window, bytes, alignment)) {
                let place = self.judged(place, node);
                let is_open = refused.as_ref().is_none_or(|refused| place > *refused);
                if is_open && best.as_ref().is_none_or(|best| place < *best) {
                    best = Some(place);
                }
            }
        }
        best
    }

    fn judged(&self, place: Place, node: Option<Node>) -> Place {
        let dirty_bytes = self.dirty_parts(place.range).map(|(part, _)| part.bytes()).sum();
        Place { distance: self.nodes.distance(place.range, node), dirty_bytes, ..place }
    }

    fn dirty_parts(&self, range: PhysRange) -> impl Iterator<Item = (PhysRange, bool)> + '_ {
        self.clean.parts(range).filter(|(_, is_clean)| !is_clean)
    }

    fn give_to_guest(&mut self, range: PhysRange, is_huge: bool) -> Option<GuestFrames> {
        let mut dirty: ArrayVec<PhysRange, MAXIMUM_DIRTY_PARTS> = ArrayVec::new();
        for (part, _) in self.dirty_parts(range) {
            if let Err(full) = dirty.try_push(part) {
                let last = dirty.last_mut()?;
                *last = PhysRange::new(last.start(), full.element().end())?;
            }
        }
        self.guests.insert(range).ok()?;
        let set = if is_huge { &mut self.huge_free } else { &mut self.free };
        if set.remove(range).is_err() {
            let _ = self.guests.remove(range);
            return None;
        }
        self.clean.discard(range);
        self.tainted.discard(range);
        self.record(range, FrameState::Guest);
        Some(GuestFrames { range: FrameRange::new(range), dirty })
    }

    /// Frees a guest's memory. It is given out as clean only after it has been scrubbed.
    ///
    /// # Errors
    /// Those of [`Frames::free`].
    pub fn free_from_guest(&mut self, range: FrameRange) -> Result<(), FreeError> {
        let whole = range.range();
        self.free(range)?;
        for (part, is_retired) in self.retired.parts(whole) {
            if !is_retired {
                self.tainted.note(part);
            }
        }
        Ok(())
    }

    /// Takes memory that a guest has had since before this ledger out of the free memory. Free it through
    /// [`FrameRange::adopt`] and [`Frames::free_from_guest`].
    ///
    /// # Errors
    /// [`TooManyExtents`]; nothing has changed.
    pub fn keep_for_guest(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        self.guests.has_room()?;
        self.take_free(range, FrameState::Guest)?;
        self.guests.insert(range)
    }

    /// Counts what guests have in frames of `size` as set aside for guests, at most `wanted` frames; returns how many
    /// it is.
    pub fn set_aside_of_guests(&mut self, size: PageSize, wanted: u64) -> u64 {
        let mut found = 0;
        let mut at = PhysAddr(0);
        while let Some(rest) = PhysRange::new(at, PhysAddr(u64::MAX)).filter(|_| found < wanted) {
            let Some(owned) = self.guests.overlap(rest) else { break };
            let fresh = self.huge.parts(owned).find(|(_, is_huge)| !is_huge).map(|(part, _)| part);
            at = fresh.map_or(owned.end(), PhysRange::end);
            let frames = fresh.unwrap_or_default().aligned_inwards(size.bytes());
            let bytes = frames.bytes().min((wanted - found) * size.bytes());
            let Some(range) = PhysRange::from_start(frames.start(), bytes).filter(|range| !range.is_empty()) else {
                continue;
            };
            if self.huge.insert(range).is_err() {
                break;
            }
            found += bytes / size.bytes();
        }
        found
    }

    /// Returns what is set aside for guests, owned or not.
    pub fn set_aside_ranges(&self) -> impl Iterator<Item = PhysRange> + '_ {
        self.huge.iter()
    }
}
