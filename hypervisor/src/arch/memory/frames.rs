// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames: the ledger of all memory, and what their owners see in them, through the direct map.

use core::sync::atomic::AtomicU64;

use frames::records::{Block, Record, Shape};
use frames::{FrameRange, Frames, LEDGER_SLOTS, ScrubPiece};
use spin::Mutex;
use units::{PageSize, PhysAddr, PhysRange};

use crate::arch::address::DIRECT_MAP;

/// All physical memory by owner.
pub static FRAMES: Mutex<Frames<'static>> = Mutex::new(Frames::new());

/// Opens the ledger of all memory, kept in `room`: at least `frames::LEDGER_BYTES` below 4 GiB without another user,
/// for ever.
pub fn open_ledger(room: PhysRange) {
    let start = (DIRECT_MAP + room.start().0) as *mut PhysRange;
    // SAFETY: the room is whole frames, shown by the boot tables and by those that follow at this address, and belongs
    // to the ledger alone, for ever; each slot is written before there is a reference to it.
    let slots = unsafe {
        (0..LEDGER_SLOTS).for_each(|index| start.add(index).write(PhysRange::default()));
        core::slice::from_raw_parts_mut(start, LEDGER_SLOTS)
    };
    *FRAMES.lock() = Frames::in_slots(slots);
}

/// Makes records and blocks of frames, for ever: so many records, of which nothing is written, and behind them the
/// blocks.
pub fn records_in(frames: FrameRange, shape: Shape) -> (&'static [Record], &'static [Block]) {
    assert!(frames.bytes() >= shape.bytes(), "the frames hold as many as that");
    let start = DIRECT_MAP + frames.leak().start().0;
    let blocks = (start + shape.record_bytes()) as *mut Block;
    // SAFETY: the frames were just allocated, are aligned to 4 KiB, and have no other user, for ever; the direct map
    // shows them. Both types are atomics, of which any bits are a value; a block's first value is zero.
    unsafe {
        core::ptr::write_bytes(blocks, 0, shape.blocks);
        (
            core::slice::from_raw_parts(start as *const Record, shape.records),
            core::slice::from_raw_parts(blocks, shape.blocks),
        )
    }
}

/// Writes zeros over a piece of memory that is being scrubbed.
pub fn clear_piece(piece: &mut ScrubPiece) {
    let range = piece.range();
    // SAFETY: the holder of the piece is the only one to use it; the direct map shows it.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + range.start().0) as *mut u8, 0, range.bytes() as usize) };
}

/// Returns what frames hold, for their owner.
pub fn bytes_of(frames: &mut FrameRange) -> &mut [u8] {
    // SAFETY: the holder of the range owns the frames, and is borrowed for as long as the bytes; the direct map shows
    // them.
    unsafe { core::slice::from_raw_parts_mut((DIRECT_MAP + frames.start().0) as *mut u8, frames.bytes() as usize) }
}

/// Frames that are given back when their owner is dropped.
pub struct OwnedFrames(Option<FrameRange>, fn(FrameRange));

impl OwnedFrames {
    /// Owns these.
    pub fn new(frames: FrameRange) -> Self {
        Self::released_by(frames, release)
    }

    /// Owns these, which `release` gives back.
    pub fn released_by(frames: FrameRange, release: fn(FrameRange)) -> Self {
        Self(Some(frames), release)
    }

    /// They have another owner from here on.
    pub fn into_frames(mut self) -> Option<FrameRange> {
        self.0.take()
    }

    /// Returns their range.
    pub fn range(&self) -> PhysRange {
        self.0.as_ref().map(FrameRange::range).unwrap_or_default()
    }

    /// Returns their content.
    pub fn bytes(&self) -> &[u8] {
        let Some(frames) = &self.0 else { return &[] };
        // SAFETY: the holder of the range owns the frames, and is borrowed for as long as the bytes; the direct map
        // shows them.
        unsafe { core::slice::from_raw_parts((DIRECT_MAP + frames.start().0) as *const u8, frames.bytes() as usize) }
    }

    /// Gives them up for good: they have no owner any more.
    pub fn leak(mut self) {
        self.0.take().map(FrameRange::leak);
    }

    /// Returns their content.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map(bytes_of).unwrap_or_default()
    }
}

impl Drop for OwnedFrames {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(self.1);
    }
}

/// Gives frames back.
pub fn release(range: FrameRange) {
    if let Err(error) = FRAMES.lock().free(range) {
        log::error!("frames: {error}");
    }
}

/// Zeroed frames in the direct map, for ever: what the CPU itself reads or writes.
pub fn permanent_frames(bytes: u64) -> Option<PhysAddr> {
    let range = FRAMES.lock().allocate(bytes, PageSize::Kib4).ok()?.leak();
    // SAFETY: the frames were just allocated: no other code uses them, and the direct map shows them.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + range.start().0) as *mut u8, 0, range.bytes() as usize) };
    Some(range.start())
}

/// Zeroed frames in the direct map, for ever, as words that any CPU may read and write; and where they are.
pub fn permanent_words(bytes: u64) -> Option<(PhysAddr, &'static [AtomicU64])> {
    let start = permanent_frames(bytes)?;
    // SAFETY: whole frames, aligned and mapped for ever, with no other owner; every bit pattern is a word.
    let words = unsafe { core::slice::from_raw_parts((DIRECT_MAP + start.0) as *const AtomicU64, bytes as usize / 8) };
    Some((start, words))
}

/// Kept frames as words that any CPU may read and write, for as long as this image runs.
pub fn adopted_words(frames: FrameRange) -> &'static [AtomicU64] {
    let range = frames.leak();
    // SAFETY: whole frames that the image before kept and that get no other owner (they are leaked here), aligned and
    // mapped for ever; every bit pattern is a word.
    unsafe {
        core::slice::from_raw_parts((DIRECT_MAP + range.start().0) as *const AtomicU64, range.bytes() as usize / 8)
    }
}
