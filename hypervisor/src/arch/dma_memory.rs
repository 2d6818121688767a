// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of the host's own that a PCI function reaches: for a command that the host gives it.

use frames::{FrameRange, OutOfMemory};
use units::{PageSize, PhysRange};

use super::address::DIRECT_MAP;
use super::memory::FRAMES;

/// Whole frames, with no other owner.
#[derive(Debug)]
pub struct DmaMemory(FrameRange);

impl DmaMemory {
    /// Allocates so many bytes in one piece.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn allocate(bytes: u64) -> Result<Self, OutOfMemory> {
        FRAMES.lock().allocate(bytes, PageSize::Kib4).map(Self)
    }

    /// Returns where it is.
    pub fn range(&self) -> PhysRange {
        self.0.range()
    }

    /// Gives the memory back: no function reaches it any more.
    pub fn free(self) {
        if let Err(error) = FRAMES.lock().free(self.0) {
            log::error!("memory of a PCI function: {error}");
        }
    }

    /// Keeps the memory for good: a function may reach it for ever, so it gets no other owner.
    pub fn keep_for_good(self) {
        self.0.leak();
    }

    fn at(&self, offset: u64) -> *mut u64 {
        assert!(offset.is_multiple_of(8) && offset < self.0.bytes(), "inside");
        (DIRECT_MAP + self.0.start().0 + offset) as *mut u64
    }
}

impl nvme::Memory for DmaMemory {
    fn read(&mut self, offset: u64) -> u64 {
        // SAFETY: `at` is aligned, in frames that are this value's alone and in the direct map. A function may write
        // them at any time: the access is volatile, and no reference to them exists.
        unsafe { self.at(offset).read_volatile() }
    }

    fn write(&mut self, offset: u64, value: u64) {
        // SAFETY: as in `read`.
        unsafe { self.at(offset).write_volatile(value) }
    }
}
