// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory as the hypervisor reaches it: through the direct map, copied in and out, never borrowed.

use arrayvec::ArrayVec;
use frames::{FrameRange, GuestFrames, Node, OutOfMemory};
use units::{ByteSize, PhysRange};
use vm::addr::Gpa;
use vm::layout;
use vm::memory::{GuestMemory, OutOfRange};

use super::address::DIRECT_MAP;
use super::cpu;
use crate::ledger;

/// One piece of guest memory: contiguous for the guest and for the host.
#[derive(Debug)]
pub struct Slot {
    /// Where the guest sees it.
    pub gpa: u64,
    /// Where it is.
    pub physical: u64,
    /// How much.
    pub bytes: u64,
    /// Who owns it: taken when the memory is given back.
    frames: Option<FrameRange>,
}

/// All memory of one guest. Dropping it gives the frames back.
#[derive(Debug)]
pub struct GuestRam {
    /// Where the host sees the memory at guest address 0, and how much of it there is.
    low_base: u64,
    low_bytes: u64,
    slots: ArrayVec<Slot, 2>,
}

impl GuestRam {
    /// `bytes` of memory (a multiple of 2 MiB), zeroed, in pages as large as its size allows, near a NUMA node.
    pub fn allocate(bytes: u64, node: Option<Node>) -> Result<Self, OutOfMemory> {
        let low_bytes = bytes.min(layout::LOW_MEMORY_END.0);
        let mut ram = Self { low_base: 0, low_bytes: 0, slots: ArrayVec::new() };
        // Whichever piece found no room, what was wanted is all of it.
        let short = |out_of_memory| OutOfMemory { bytes, ..out_of_memory };
        let start = cpu::tsc();
        let mut cleared_bytes = ram.add(0, low_bytes, node).map_err(short)?;
        ram.low_base = ram.slots.first().map_or(0, |slot| DIRECT_MAP + slot.physical);
        ram.low_bytes = low_bytes;
        if bytes > low_bytes {
            cleared_bytes += ram.add(layout::HIGH_MEMORY.0, bytes - low_bytes, node).map_err(short)?;
        }
        let (all, cleared, cycles) = (ByteSize(bytes), ByteSize(cleared_bytes), cpu::tsc() - start);
        log::debug!("{all} for a guest, {cleared} of it cleared, in {cycles} cycles");
        Ok(ram)
    }

    /// Memory that a guest has from the image before: pieces by rising guest address, each where it is, how much, and where
    /// the guest sees it. `None` if no guest's memory is so.
    pub fn adopt(pieces: impl Iterator<Item = (PhysRange, u64)>) -> Option<Self> {
        let mut ram = Self { low_base: 0, low_bytes: 0, slots: ArrayVec::new() };
        for (range, gpa) in pieces {
            let frames = FrameRange::adopt(range);
            let slot = Slot { gpa, physical: range.start().0, bytes: range.bytes(), frames: None };
            ram.slots.try_push(slot).ok()?;
            ram.slots.last_mut()?.frames = frames;
        }
        let low = ram.slots.first().filter(|slot| slot.gpa == 0 && slot.frames.is_some())?;
        (ram.low_base, ram.low_bytes) = (DIRECT_MAP + low.physical, low.bytes);
        Some(ram)
    }

    /// Adds a piece, and says how much of it had to be cleared.
    fn add(&mut self, gpa: u64, bytes: u64, node: Option<Node>) -> Result<u64, OutOfMemory> {
        let GuestFrames { range, dirty } = ledger::guests::allocate(bytes, node)?;
        dirty.iter().for_each(|part| clear(&range, *part));
        self.slots.push(Slot { gpa, physical: range.start().0, bytes, frames: Some(range) });
        Ok(dirty.iter().map(|part| part.bytes()).sum())
    }

    /// The pieces, by rising guest address.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The host's view of `bytes` bytes at `gpa`, if they are all in one slot.
    #[inline(always)]
    fn host(&self, gpa: Gpa, bytes: usize) -> Result<*mut u8, OutOfRange> {
        // Nearly everything is in low memory, which begins at 0.
        let end = gpa.0.wrapping_add(bytes as u64);
        if end <= self.low_bytes && gpa.0 <= end {
            return Ok((self.low_base + gpa.0) as *mut u8);
        }
        self.host_high(gpa, bytes)
    }

    #[cold]
    fn host_high(&self, gpa: Gpa, bytes: usize) -> Result<*mut u8, OutOfRange> {
        for slot in &self.slots {
            let offset = gpa.0.wrapping_sub(slot.gpa);
            if offset < slot.bytes && bytes as u64 <= slot.bytes - offset {
                return Ok((DIRECT_MAP + slot.physical + offset) as *mut u8);
            }
        }
        Err(OutOfRange { gpa, bytes })
    }
}

/// Writes zeros over a part of frames: what another guest left must not be seen.
fn clear(frames: &FrameRange, part: PhysRange) {
    let part = part.intersection(frames.range()).unwrap_or_default();
    // SAFETY: the frames belong to a guest that does not exist yet, and to nobody else; the direct map shows them.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + part.start().0) as *mut u8, 0, part.bytes() as usize) };
}

impl GuestMemory for GuestRam {
    #[inline]
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.host(gpa, into.len())?;
        // SAFETY: `host` checked the range; the guest may write it meanwhile, so the bytes are copied as raw memory, and no
        // reference into it exists. `into` is the hypervisor's own memory, never a guest's.
        unsafe { core::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    #[inline]
    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        let into = self.host(gpa, from.len())?;
        // SAFETY: as in `read`, the other way round.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), into, from.len()) };
        Ok(())
    }

    #[inline]
    fn read_u64(&self, gpa: Gpa) -> Result<u64, OutOfRange> {
        let from = self.host(gpa, 8)?;
        // SAFETY: `host` checked the range; an unaligned volatile read is a plain load on x86.
        Ok(unsafe { core::ptr::read_unaligned(from.cast::<u64>()) })
    }

    fn size_bytes(&self) -> u64 {
        self.slots.iter().map(|slot| slot.bytes).sum()
    }
}

impl Drop for GuestRam {
    fn drop(&mut self) {
        self.slots.iter_mut().filter_map(|slot| slot.frames.take()).for_each(ledger::guests::release);
    }
}
