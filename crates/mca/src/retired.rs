// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that was retired after machine checks, as the next image gets it.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use units::{PhysAddr, PhysRange};

/// A list of at most `MOST` ranges that only grows. CPUs add to it at the same time. It is read without a lock, because
/// it is read when an image hands over, where a CPU that is stopped could hold one.
#[derive(Debug)]
pub struct Retired<const MOST: usize> {
    slots: [Slot; MOST],
    /// Slots that have been given out. A slot counts once its bytes are not zero.
    taken: AtomicUsize,
}

#[derive(Debug)]
struct Slot {
    start: AtomicU64,
    bytes: AtomicU64,
}

impl<const MOST: usize> Retired<MOST> {
    /// An empty list.
    pub const fn new() -> Self {
        let slots = [const { Slot { start: AtomicU64::new(0), bytes: AtomicU64::new(0) } }; MOST];
        Self { slots, taken: AtomicUsize::new(0) }
    }

    /// Adds a range. `false` if the list is full: then the next image does not get it.
    #[must_use]
    pub fn add(&self, range: PhysRange) -> bool {
        let next = |taken: usize| (taken < MOST).then_some(taken + 1);
        let Ok(index) = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else { return false };
        self.slots[index].start.store(range.start().0, Ordering::Relaxed);
        self.slots[index].bytes.store(range.bytes(), Ordering::Release);
        true
    }

    /// The number of ranges that were added.
    pub fn count(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// The ranges, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = PhysRange> + '_ {
        let range = |slot: &Slot| {
            let bytes = slot.bytes.load(Ordering::Acquire);
            PhysRange::from_start(PhysAddr(slot.start.load(Ordering::Relaxed)), bytes)
        };
        self.slots.iter().filter_map(range).filter(|range| !range.is_empty())
    }
}

impl<const MOST: usize> Default for Retired<MOST> {
    fn default() -> Self {
        Self::new()
    }
}
