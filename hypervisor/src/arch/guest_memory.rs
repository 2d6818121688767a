// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory as the hypervisor reaches it: through the direct map, copied in and out, never borrowed.

mod copying;
mod on_demand;
mod source;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use frames::{FrameRange, GuestFrames, Node, OutOfMemory};
use units::{ByteSize, PhysRange};
use vm::addr::{AccessSize, Gpa};
use vm::memory::{GuestMemory, OutOfRange};
use vm::platform::layout;

use self::copying::{clear, compare_exchange, copy, load};
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

/// Bytes of one part of a copy from or to memory on demand.
const PART_BYTES: usize = 1024;

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

    /// Copies from this guest's memory to another's, or to its own; where the ranges overlap, any of its bytes may be
    /// those of either. Nothing is copied if either range is not all memory.
    #[inline]
    pub fn copy_to(&self, from: Gpa, other: &Self, to: Gpa, bytes: usize) -> Result<(), OutsideOf> {
        let (Some(from), Some(into)) = (self.low(from, bytes), other.low(to, bytes)) else {
            return self.copy_elsewhere(from, other, to, bytes);
        };
        // SAFETY: `low` checked both ranges, and no reference into guest memory exists. Guests may write either
        // meanwhile, or have made them overlap: each byte is still one load and one store.
        unsafe { copy(from, into, bytes) };
        Ok(())
    }

    #[cold]
    fn copy_elsewhere(&self, from: Gpa, other: &Self, to: Gpa, bytes: usize) -> Result<(), OutsideOf> {
        if self.blocks.is_some() || other.blocks.is_some() {
            return self.copy_by_parts(from, other, to, bytes);
        }
        let from = self.host(from, bytes).map_err(OutsideOf::Source)?;
        let into = other.host(to, bytes).map_err(OutsideOf::Destination)?;
        // SAFETY: as in `copy_to`.
        unsafe { copy(from, into, bytes) };
        Ok(())
    }

    /// Copies where one of them has memory on demand.
    fn copy_by_parts(&self, from: Gpa, other: &Self, to: Gpa, bytes: usize) -> Result<(), OutsideOf> {
        let mut piece = [0; PART_BYTES];
        self.check(from, bytes).map_err(OutsideOf::Source)?;
        other.check(to, bytes).map_err(OutsideOf::Destination)?;
        for at in (0..bytes).step_by(PART_BYTES) {
            let part = &mut piece[..PART_BYTES.min(bytes - at)];
            self.read(Gpa(from.0 + at as u64), part).map_err(OutsideOf::Source)?;
            other.write(Gpa(to.0 + at as u64), part).map_err(OutsideOf::Destination)?;
        }
        Ok(())
    }

    fn check(&self, gpa: Gpa, bytes: usize) -> Result<(), OutOfRange> {
        match &self.blocks {
            Some(blocks) => blocks.check(gpa.0, bytes).map_err(|_| OutOfRange { gpa, bytes }),
            None => self.host(gpa, bytes).map(drop),
        }
    }

    /// The host's view of `bytes` bytes at `gpa`, if they are all in one slot.
    #[inline(always)]
    fn host(&self, gpa: Gpa, bytes: usize) -> Result<*mut u8, OutOfRange> {
        match self.low(gpa, bytes) {
            Some(host) => Ok(host),
            None => self.host_high(gpa, bytes),
        }
    }

    /// Likewise, if they are in low memory, which begins at 0: nearly everything is. Not of memory on demand.
    #[inline(always)]
    fn low(&self, gpa: Gpa, bytes: usize) -> Option<*mut u8> {
        let end = gpa.0.wrapping_add(bytes as u64);
        (end <= self.low_bytes && gpa.0 <= end).then_some((self.low_base + gpa.0) as *mut u8)
    }

    #[cold]
    fn host_high(&self, gpa: Gpa, bytes: usize) -> Result<*mut u8, OutOfRange> {
        for Slot { piece, .. } in &self.slots {
            let offset = gpa.0.wrapping_sub(piece.gpa);
            if offset < piece.bytes && bytes as u64 <= piece.bytes - offset {
                return Ok((DIRECT_MAP + piece.physical + offset) as *mut u8);
            }
        }
        Err(OutOfRange { gpa, bytes })
    }

    #[cold]
    fn read_elsewhere(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        if let Some(blocks) = &self.blocks {
            return on_demand::read(blocks, gpa, into);
        }
        let from = self.host_high(gpa, into.len())?;
        // SAFETY: as in `read`.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    #[cold]
    fn write_elsewhere(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        if let Some(blocks) = &self.blocks {
            return on_demand::write(blocks, gpa, from);
        }
        let into = self.host_high(gpa, from.len())?;
        // SAFETY: as in `write`.
        unsafe { copy(from.as_ptr(), into, from.len()) };
        Ok(())
    }

    /// Calls `act` with the host's view of a range that is in one block.
    #[cold]
    fn with_host<R>(&self, gpa: Gpa, bytes: usize, mut act: impl FnMut(*mut u8) -> R) -> Result<R, OutOfRange> {
        match &self.blocks {
            Some(blocks) => on_demand::with_host(blocks, gpa, bytes, act),
            None => self.host(gpa, bytes).map(&mut act),
        }
    }
}

impl GuestMemory for GuestRam {
    #[inline]
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        let Some(from) = self.low(gpa, into.len()) else { return self.read_elsewhere(gpa, into) };
        // SAFETY: `low` checked the range, and no reference into it exists. `into` is the hypervisor's own memory,
        // never a guest's.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    #[inline]
    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        let Some(into) = self.low(gpa, from.len()) else { return self.write_elsewhere(gpa, from) };
        // SAFETY: as in `read`, the other way round.
        unsafe { copy(from.as_ptr(), into, from.len()) };
        Ok(())
    }

    #[inline]
    fn read_u64(&self, gpa: Gpa) -> Result<u64, OutOfRange> {
        // SAFETY: `low` or `with_host` has checked the range.
        let load = |from: *mut u8| unsafe { load(from) };
        match self.low(gpa, 8) {
            Some(from) => Ok(load(from)),
            None => self.with_host(gpa, 8, load),
        }
    }

    fn is_on_demand(&self, gpa: Gpa) -> bool {
        self.blocks.as_ref().is_some_and(|blocks| blocks.check(gpa.0, 1).is_ok())
    }

    #[cold]
    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, old: u64, new: u64) -> Result<bool, OutOfRange> {
        // SAFETY: `with_host` has checked the range.
        let exchanged = self.with_host(gpa, size.bytes(), |at| unsafe { compare_exchange(at, size, old, new) })?;
        exchanged.ok_or(OutOfRange { gpa, bytes: size.bytes() })
    }

    fn size_bytes(&self) -> u64 {
        match &self.blocks {
            Some(blocks) => blocks.bytes(),
            None => self.slots.iter().map(|slot| slot.piece.bytes).sum(),
        }
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
