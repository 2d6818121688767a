// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of addresses as sorted ranges that neither overlap nor touch.

use units::{PhysAddr, PhysRange};

use crate::error::TooManyExtents;

/// Bytes of a range as the set keeps it.
pub(crate) const EXTENT_BYTES: u64 = size_of::<PhysRange>() as u64;

/// The set, in memory from its owner, which bounds the number of ranges.
#[derive(Debug, Default)]
pub(crate) struct Extents<'m> {
    slots: &'m mut [PhysRange],
    count: usize,
    /// Slots written since the set was made.
    writes: u64,
}

impl<'m> Extents<'m> {
    /// Returns an empty set without room.
    pub(crate) const fn new() -> Self {
        Self { slots: &mut [], count: 0, writes: 0 }
    }

    /// Returns an empty set with room for as many ranges as there are slots.
    pub(crate) fn in_slots(slots: &'m mut [PhysRange]) -> Self {
        Self { slots, count: 0, writes: 0 }
    }

    /// Returns how many bytes of the set's own have been written.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.writes * EXTENT_BYTES
    }

    fn all(&self) -> &[PhysRange] {
        self.slots.get(..self.count).unwrap_or_default()
    }

    /// Returns how many ranges there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = PhysRange> + Clone + '_ {
        self.all().iter().copied()
    }

    /// Returns how many bytes are in the set.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(PhysRange::bytes).sum()
    }

    /// Returns the first part of `range` that is in the set.
    pub(crate) fn overlap(&self, range: PhysRange) -> Option<PhysRange> {
        self.all().get(self.first_ending_after(range)).and_then(|extent| extent.intersection(range))
    }

    /// Returns whether all of `range` is in the set.
    pub(crate) fn contains(&self, range: PhysRange) -> bool {
        range.is_empty()
            || self.all().get(self.first_ending_after(range)).is_some_and(|extent| extent.contains_range(range))
    }

    /// Parts `range` where it enters and leaves the set; states of each part whether it is inside.
    pub(crate) fn parts(&self, range: PhysRange) -> impl Iterator<Item = (PhysRange, bool)> + '_ {
        let mut at = range.start();
        core::iter::from_fn(move || {
            let rest = PhysRange::new(at, range.end()).filter(|rest| !rest.is_empty())?;
            let (part, is_inside) = match self.overlap(rest) {
                Some(inside) if inside.start() == at => (inside, true),
                Some(inside) => (PhysRange::new(at, inside.start())?, false),
                None => (rest, false),
            };
            at = part.end();
            Some((part, is_inside))
        })
    }

    /// Adds `range`, of which nothing is in the set, joining it with neighbours that it touches.
    pub(crate) fn insert(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        if range.is_empty() {
            return Ok(());
        }
        let at = self.first_ending_after(range);
        let before = at.checked_sub(1).filter(|index| self.slots[*index].end() == range.start());
        let after = Some(at).filter(|index| self.all().get(*index).is_some_and(|next| next.start() == range.end()));
        match (before, after) {
            (Some(before), Some(after)) => {
                self.put(before, join(self.slots[before], self.slots[after]));
                self.take_out(after);
            }
            (Some(neighbour), None) | (None, Some(neighbour)) => {
                self.put(neighbour, join(self.slots[neighbour], range));
            }
            (None, None) => self.put_in(at, range)?,
        }
        Ok(())
    }

    /// Takes out all of `range` that is in the set. Only cutting a hole into one extent can fail, and then nothing
    /// has been taken.
    pub(crate) fn remove(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        let mut index = self.first_ending_after(range);
        while let Some(common) = self.all().get(index).and_then(|extent| extent.intersection(range)) {
            let extent = self.slots[index];
            let left = PhysRange::new(extent.start(), common.start()).filter(|part| !part.is_empty());
            let right = PhysRange::new(common.end(), extent.end()).filter(|part| !part.is_empty());
            match (left, right) {
                (Some(left), Some(right)) => {
                    self.put_in(index + 1, right)?;
                    self.put(index, left);
                    return Ok(());
                }
                (Some(part), None) | (None, Some(part)) => {
                    self.put(index, part);
                    index += 1;
                }
                (None, None) => self.take_out(index),
            }
        }
        Ok(())
    }

    /// Adds the parts of `range` that are not in the set yet. With one free slot it cannot fail.
    pub(crate) fn add(&mut self, range: PhysRange) -> Result<(), TooManyExtents> {
        let mut at = range.start();
        while let Some(rest) = PhysRange::new(at, range.end()).filter(|rest| !rest.is_empty()) {
            let next = self.overlap(rest);
            let fresh = PhysRange::new(at, next.map_or(range.end(), PhysRange::start));
            self.insert(fresh.unwrap_or_default())?;
            at = next.map_or(range.end(), PhysRange::end);
        }
        Ok(())
    }

    /// Checks that there is space for one more extent.
    pub(crate) fn has_room(&self) -> Result<(), TooManyExtents> {
        if self.count < self.slots.len() { Ok(()) } else { Err(self.full()) }
    }

    fn full(&self) -> TooManyExtents {
        TooManyExtents { most: self.slots.len() }
    }

    /// Takes out `range`, and the rest of its extent where no slot is free to keep it. For sets that may lose entries.
    pub(crate) fn discard(&mut self, range: PhysRange) {
        if self.remove(range).is_err() {
            self.take_out(self.first_ending_after(range));
        }
    }

    /// Adds the parts of `range` that are not in the set yet, as far as slots are free. For sets that may lose entries.
    pub(crate) fn note(&mut self, range: PhysRange) {
        let _ = self.add(range);
    }

    /// Returns the index of the first extent that does not lie wholly below `range`.
    fn first_ending_after(&self, range: PhysRange) -> usize {
        self.all().partition_point(|extent| extent.end() <= range.start())
    }

    fn put(&mut self, index: usize, range: PhysRange) {
        self.slots[index] = range;
        self.writes += 1;
    }

    fn put_in(&mut self, index: usize, range: PhysRange) -> Result<(), TooManyExtents> {
        self.has_room()?;
        self.slots.copy_within(index..self.count, index + 1);
        self.writes += (self.count - index) as u64;
        self.count += 1;
        self.put(index, range);
        Ok(())
    }

    fn take_out(&mut self, index: usize) {
        self.slots.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.writes += (self.count - index) as u64;
    }
}

/// Returns the range from the first of both ranges to the end of the last.
fn join(first: PhysRange, second: PhysRange) -> PhysRange {
    let (start, end): (PhysAddr, PhysAddr) = (first.start().min(second.start()), first.end().max(second.end()));
    PhysRange::new(start, end).unwrap_or(first)
}
