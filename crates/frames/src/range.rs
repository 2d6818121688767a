// SPDX-License-Identifier: MIT OR Apache-2.0
//! Owned memory.

use units::{PAGE_BYTES, PhysAddr, PhysRange};

/// Frames that are owned: whole 4 KiB frames, at least one. Not `Copy`, not `Clone`: there is one per allocation.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "dropping it leaks the memory: free it with Frames::free, or leak it explicitly with leak()"]
pub struct FrameRange(PhysRange);

impl FrameRange {
    pub(crate) fn new(range: PhysRange) -> Self {
        debug_assert!(!range.is_empty() && range.is_aligned(PAGE_BYTES));
        Self(range)
    }

    /// Takes ownership of memory that was never allocated here: what was reserved for the image or a module and is no
    /// longer needed, or what an earlier owner handed over. `None` unless it is whole frames, at least one.
    ///
    /// The caller vouches that the range has no other owner; [`Frames::free`](crate::Frames::free) still refuses
    /// it if some of it is free already or was never memory.
    pub fn adopt(range: PhysRange) -> Option<Self> {
        (!range.is_empty() && range.is_aligned(PAGE_BYTES)).then_some(Self(range))
    }

    /// Returns where it is.
    pub fn range(&self) -> PhysRange {
        self.0
    }

    /// Returns the first address.
    pub fn start(&self) -> PhysAddr {
        self.0.start()
    }

    /// Returns how many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// Parts it in two, the first of `bytes` bytes; `Err` gives it back unless both parts are whole frames, at least
    /// one.
    pub fn split(self, bytes: u64) -> Result<(Self, Self), Self> {
        let middle = self.0.start().checked_add(bytes).filter(|middle| middle.is_aligned(PAGE_BYTES));
        match middle
            .and_then(|middle| Some((PhysRange::new(self.0.start(), middle)?, PhysRange::new(middle, self.0.end())?)))
        {
            Some((first, second)) if !first.is_empty() && !second.is_empty() => Ok((Self(first), Self(second))),
            _ => Err(self),
        }
    }

    /// Gives up ownership for good: the memory stays in use until [`FrameRange::adopt`] takes it over.
    pub fn leak(self) -> PhysRange {
        self.0
    }
}
