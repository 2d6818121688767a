// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that is to go on from what was saved of it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frames::FrameRange;
use vm::platform::layout;

use crate::arch::guest_memory::GuestRam;
use crate::kernel::ledger::guests::FRAME_SOURCE;

/// A saved guest.
pub struct Staged {
    /// Its memory.
    pub memory: GuestRam,
    /// The blocks of its state.
    pub state: Box<[u8]>,
}

/// The pieces of memory of a guest that has so much, by rising address: where each begins, and its size.
pub fn pieces(memory_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let low = memory_bytes.min(layout::LOW_MEMORY_END.0);
    [(0, low), (layout::HIGH_MEMORY.0, memory_bytes - low)].into_iter().filter(|(_, bytes)| *bytes > 0)
}

/// The memory of a guest that has so much, in these frames: one for each of its [`pieces`].
pub fn memory_of(memory_bytes: u64, frames: Vec<FrameRange>) -> Option<GuestRam> {
    GuestRam::of_frames(&FRAME_SOURCE, frames.into_iter().zip(pieces(memory_bytes).map(|(gpa, _)| gpa)))
}
