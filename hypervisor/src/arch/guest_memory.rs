// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory as the hypervisor reaches it: through the direct map, copied in and out, never borrowed.

mod access;
mod copying;
mod on_demand;
mod source;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use frames::{FrameRange, GuestFrames, Node, OutOfMemory};
use units::{ByteSize, PhysRange};
use vm::memory::{GuestMemory as _, OutOfRange};
use vm::platform::layout;

use self::copying::clear;
pub use self::on_demand::GuestBlocks;
pub use self::source::FrameSource;
use super::address::DIRECT_MAP;
use super::cpu;

/// One piece of guest memory: contiguous for the guest and for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The guest's address of it.
    pub gpa: u64,
    /// Physical address.
    pub physical: u64,
    /// Its size.
    pub bytes: u64,
}

/// A piece and its owner, which is taken when the memory is given back.
#[derive(Debug)]
struct Slot {
    piece: Piece,
    frames: Option<FrameRange>,
}

/// The range of a copy that is not all guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutsideOf {
    /// The address of the read.
    Source(OutOfRange),
    /// The address of the write.
    Destination(OutOfRange),
}

/// All memory of one guest. Dropping it gives the frames back.
#[derive(Debug)]
pub struct GuestRam {
    /// The host's address of the memory at guest address 0, and its size.
    low_base: u64,
    low_bytes: u64,
    slots: ArrayVec<Slot, 2>,
    /// Memory on demand; then there are no slots.
    blocks: Option<Arc<GuestBlocks>>,
    source: &'static FrameSource,
    /// Something else may reach it for good.
    is_kept: AtomicBool,
}

impl GuestRam {
    /// `bytes` of memory (a multiple of 2 MiB), zeroed, in pages as large as its size allows, near a NUMA node.
    pub fn allocate(source: &'static FrameSource, bytes: u64, node: Option<Node>) -> Result<Self, OutOfMemory> {
        let low_bytes = bytes.min(layout::LOW_MEMORY_END.0);
        let mut ram = Self::empty(source);
        // Whichever piece found no room, what was wanted is all of it.
        let short = |out_of_memory| OutOfMemory { bytes, ..out_of_memory };
        let start = cpu::tsc();
        let mut cleared_bytes = ram.add(0, low_bytes, node).map_err(short)?;
        ram.low_base = ram.slots.first().map_or(0, |slot| DIRECT_MAP + slot.piece.physical);
        ram.low_bytes = low_bytes;
        if bytes > low_bytes {
            cleared_bytes += ram.add(layout::HIGH_MEMORY.0, bytes - low_bytes, node).map_err(short)?;
        }
        let (all, cleared, cycles) = (ByteSize(bytes), ByteSize(cleared_bytes), cpu::tsc() - start);
        log::debug!("{all} for a guest, {cleared} of it cleared, in {cycles} cycles");
        Ok(ram)
    }

    fn empty(source: &'static FrameSource) -> Self {
        let (slots, is_kept) = (ArrayVec::new(), AtomicBool::new(false));
        Self { low_base: 0, low_bytes: 0, slots, blocks: None, source, is_kept }
    }

    /// `bytes` of memory on demand (a multiple of 2 MiB), zeroed: the guest gets a block when it is touched for the
    /// first time, in any case as long as it has no more than `assured_bytes`.
    pub fn on_demand(
        source: &'static FrameSource,
        (bytes, assured_bytes): (u64, u64),
        node: Option<Node>,
    ) -> Result<Self, OutOfMemory> {
        (source.assure)(assured_bytes)?;
        let blocks = Arc::new(on_demand::empty(source, bytes, assured_bytes, node));
        let mut ram = Self::empty(source);
        ram.blocks = Some(blocks);
        Ok(ram)
    }

    /// Memory on demand that a guest has from the image before: the physical address of each of its blocks, or 0, and
    /// of spare ones. It changes only after [`Blocks::settle`](demand::Blocks::settle).
    pub fn adopt_on_demand(
        source: &'static FrameSource,
        blocks: impl Iterator<Item = u64>,
        spares: impl Iterator<Item = u64>,
        assured_bytes: u64,
    ) -> Self {
        let blocks = Arc::new(on_demand::adopt(source, blocks, spares, assured_bytes));
        let mut ram = Self::empty(source);
        ram.blocks = Some(blocks);
        ram
    }

    /// Memory on demand, if it is.
    pub fn blocks(&self) -> Option<&Arc<GuestBlocks>> {
        self.blocks.as_ref()
    }

    /// Memory that a guest has from the image before: pieces by rising guest address, each where it is, how much, and
    /// where the guest sees it. `None` if no guest's memory is so.
    pub fn adopt(source: &'static FrameSource, pieces: impl Iterator<Item = (PhysRange, u64)>) -> Option<Self> {
        let frames = pieces.map(|(range, gpa)| Some((FrameRange::adopt(range)?, gpa)));
        Self::of_frames(source, frames.collect::<Option<Vec<_>>>()?.into_iter())
    }

    /// Memory that is in these frames already: pieces by rising guest address, each with that address. `None`, and they
    /// are given back, if no guest's memory is so.
    pub fn of_frames(source: &'static FrameSource, pieces: impl Iterator<Item = (FrameRange, u64)>) -> Option<Self> {
        let mut ram = Self::empty(source);
        for (frames, gpa) in pieces {
            let range = frames.range();
            let piece = Piece { gpa, physical: range.start().0, bytes: range.bytes() };
            let slot = Slot { piece, frames: Some(frames) };
            if let Err(rest) = ram.slots.try_push(slot) {
                rest.element().frames.into_iter().for_each(source.release);
                return None;
            }
        }
        let low = ram.slots.first().map(|slot| slot.piece).filter(|piece| piece.gpa == 0)?;
        (ram.low_base, ram.low_bytes) = (DIRECT_MAP + low.physical, low.bytes);
        Some(ram)
    }

    /// Adds a piece, and returns how much of it had to be cleared.
    fn add(&mut self, gpa: u64, bytes: u64, node: Option<Node>) -> Result<u64, OutOfMemory> {
        let GuestFrames { range, dirty } = (self.source.allocate)(bytes, node)?;
        dirty.iter().for_each(|part| clear(&range, *part));
        log::debug!("memory {} is a guest's, from {gpa:#x} on", range.range());
        let piece = Piece { gpa, physical: range.start().0, bytes };
        self.slots.push(Slot { piece, frames: Some(range) });
        Ok(dirty.iter().map(|part| part.bytes()).sum())
    }

    /// Keeps the memory for good: a device may still reach it, so it gets no other owner.
    pub fn keep_for_good(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    /// The pieces, by rising guest address; of memory on demand those that the guest has now.
    pub fn pieces(&self) -> Vec<Piece> {
        match &self.blocks {
            Some(blocks) => {
                let pieces = blocks.pieces().into_iter();
                pieces.map(|(gpa, physical, bytes)| Piece { gpa, physical, bytes }).collect()
            }
            None => self.slots.iter().map(|slot| slot.piece).collect(),
        }
    }

    /// The guest's view of it: address and size of each piece, by rising address.
    pub fn layout(&self) -> impl Iterator<Item = (u64, u64)> {
        let bytes = self.size_bytes();
        let low = bytes.min(layout::LOW_MEMORY_END.0);
        [(0, low), (layout::HIGH_MEMORY.0, bytes - low)].into_iter().filter(|(_, bytes)| *bytes > 0)
    }
}

impl Drop for GuestRam {
    fn drop(&mut self) {
        let is_kept = self.is_kept.load(Ordering::Acquire);
        self.blocks.iter().for_each(|blocks| blocks.release_all(is_kept));
        let frames = self.slots.iter_mut().filter_map(|slot| slot.frames.take());
        match is_kept {
            true => frames.for_each(|frames| _ = frames.leak()),
            false => frames.for_each(self.source.release),
        }
    }
}
