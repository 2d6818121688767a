// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of its own for one thing that is saved.

use handover::layout::guests::BlockPlace;
use spin::Mutex;
use units::{PhysAddr, PhysRange};

use crate::arch::memory::OwnedFrames;

/// Memory of its own for one thing that is saved.
pub struct Block {
    /// Its place, for the new image.
    pub place: BlockPlace,
    frames: Mutex<OwnedFrames>,
}

impl Block {
    /// A block in these frames.
    pub fn new(place: BlockPlace, frames: OwnedFrames) -> Self {
        Self { place, frames: Mutex::new(frames) }
    }

    /// Its memory.
    pub fn range(&self) -> PhysRange {
        PhysRange::from_start(PhysAddr(self.place.start.get()), self.place.bytes.get()).unwrap_or_default()
    }

    /// Fills it. For the CPU that carries what is in it: no other CPU waits for this lock.
    pub fn with<T>(&self, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        fill(self.frames.lock().bytes_mut())
    }
}
