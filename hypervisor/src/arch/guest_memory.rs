// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory as the hypervisor reaches it: through the direct map, copied in and out, never borrowed.

use alloc::vec::Vec;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use arrayvec::ArrayVec;
use frames::{FrameRange, GuestFrames, Node, OutOfMemory};
use units::{ByteSize, PhysRange};
use vm::addr::{AccessSize, Gpa};
use vm::memory::{GuestMemory, OutOfRange};
use vm::platform::layout;

use super::address::DIRECT_MAP;
use super::cpu;

/// Up to here a copy is not worth the start of a string instruction.
const SHORT_BYTES: usize = 64;

/// The source of guests' frames, to which they return. The policy (huge pages, NUMA nodes, scrubbing) is above
/// this module, so each guest's memory carries it.
#[derive(Debug)]
pub struct FrameSource {
    /// Gives frames for a guest in one piece, near a NUMA node.
    pub allocate: fn(bytes: u64, node: Option<Node>) -> Result<GuestFrames, OutOfMemory>,
    /// Takes them back; they hold what the guest has left.
    pub release: fn(FrameRange),
}

/// One piece of guest memory: contiguous for the guest and for the host.
#[derive(Debug)]
pub struct Slot {
    /// The guest's address of it.
    pub gpa: u64,
    /// Physical address.
    pub physical: u64,
    /// Its size.
    pub bytes: u64,
    /// Its owner: taken when the memory is given back.
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
    source: &'static FrameSource,
    /// Something else may reach it for good.
    is_kept: AtomicBool,
}

impl GuestRam {
    /// `bytes` of memory (a multiple of 2 MiB), zeroed, in pages as large as its size allows, near a NUMA node.
    pub fn allocate(source: &'static FrameSource, bytes: u64, node: Option<Node>) -> Result<Self, OutOfMemory> {
        let low_bytes = bytes.min(layout::LOW_MEMORY_END.0);
        let mut ram =
            Self { low_base: 0, low_bytes: 0, slots: ArrayVec::new(), source, is_kept: AtomicBool::new(false) };
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

    /// Memory that a guest has from the image before: pieces by rising guest address, each where it is, how much, and
    /// where the guest sees it. `None` if no guest's memory is so.
    pub fn adopt(source: &'static FrameSource, pieces: impl Iterator<Item = (PhysRange, u64)>) -> Option<Self> {
        let frames = pieces.map(|(range, gpa)| Some((FrameRange::adopt(range)?, gpa)));
        Self::of_frames(source, frames.collect::<Option<Vec<_>>>()?.into_iter())
    }

    /// Memory that is in these frames already: pieces by rising guest address, each with that address. `None`, and they
    /// are given back, if no guest's memory is so.
    pub fn of_frames(source: &'static FrameSource, pieces: impl Iterator<Item = (FrameRange, u64)>) -> Option<Self> {
        let mut ram =
            Self { low_base: 0, low_bytes: 0, slots: ArrayVec::new(), source, is_kept: AtomicBool::new(false) };
        for (frames, gpa) in pieces {
            let range = frames.range();
            let slot = Slot { gpa, physical: range.start().0, bytes: range.bytes(), frames: Some(frames) };
            if let Err(rest) = ram.slots.try_push(slot) {
                rest.element().frames.into_iter().for_each(source.release);
                return None;
            }
        }
        let low = ram.slots.first().filter(|slot| slot.gpa == 0)?;
        (ram.low_base, ram.low_bytes) = (DIRECT_MAP + low.physical, low.bytes);
        Some(ram)
    }

    /// Adds a piece, and returns how much of it had to be cleared.
    fn add(&mut self, gpa: u64, bytes: u64, node: Option<Node>) -> Result<u64, OutOfMemory> {
        let GuestFrames { range, dirty } = (self.source.allocate)(bytes, node)?;
        dirty.iter().for_each(|part| clear(&range, *part));
        log::debug!("memory {} is a guest's, from {gpa:#x} on", range.range());
        self.slots.push(Slot { gpa, physical: range.start().0, bytes, frames: Some(range) });
        Ok(dirty.iter().map(|part| part.bytes()).sum())
    }

    /// Keeps the memory for good: a device may still reach it, so it gets no other owner.
    pub fn keep_for_good(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    /// The pieces, by rising guest address.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Copies from this guest's memory to another's, or to its own; where the ranges overlap, any of its bytes may be
    /// those of either. Nothing is copied if either range is not all memory.
    pub fn copy_to(&self, from: Gpa, other: &Self, to: Gpa, bytes: usize) -> Result<(), OutsideOf> {
        let from = self.host(from, bytes).map_err(OutsideOf::Source)?;
        let into = other.host(to, bytes).map_err(OutsideOf::Destination)?;
        // SAFETY: `host` checked both ranges, and no reference into guest memory exists. Guests may write either
        // meanwhile, or have made them overlap: each byte is still one load and one store.
        unsafe { copy(from, into, bytes) };
        Ok(())
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

/// Copies between a guest's memory and the hypervisor's, each byte with one access. The guest may write the memory
/// meanwhile: what was checked must be what is used, so the compiler may not fetch anything a second time, as it may
/// with a plain copy. It knows of no other access than these instructions'.
///
/// # Safety
/// Both ranges are mapped; no reference points into a guest's.
#[inline]
unsafe fn copy(from: *const u8, into: *mut u8, bytes: usize) {
    if bytes > SHORT_BYTES {
        // By quadwords: CPUs move both by cache lines, emulators do not.
        // SAFETY: the caller's promise; the direction flag is clear by the calling convention.
        return unsafe {
            asm!("rep movsq", "mov ecx, {rest:e}", "rep movsb", rest = in(reg) bytes & 7,
                inout("rsi") from => _, inout("rdi") into => _, inout("rcx") bytes / 8 => _,
                options(nostack, preserves_flags));
        };
    }
    let mut at = 0;
    // Copies the bytes of one register if so many are left.
    macro_rules! step {
        ($width:literal, $class:ident, $register:literal) => {
            if bytes - at >= $width {
                // SAFETY: the caller's promise: so many bytes are left.
                unsafe {
                    asm!(
                        concat!("mov ", $register, ", [{from} + {at}]"), concat!("mov [{into} + {at}], ", $register),
                        scratch = out($class) _, from = in(reg) from, into = in(reg) into, at = in(reg) at,
                        options(nostack, preserves_flags),
                    );
                }
                at += $width;
            }
        };
    }
    while bytes - at >= 8 {
        step!(8, reg, "{scratch}");
    }
    step!(4, reg, "{scratch:e}");
    step!(2, reg, "{scratch:x}");
    step!(1, reg_byte, "{scratch}");
    debug_assert_eq!(at, bytes);
}

/// Writes zeros over a part of frames: what another guest left must not be seen.
fn clear(frames: &FrameRange, part: PhysRange) {
    let part = part.intersection(frames.range()).unwrap_or_default();
    // SAFETY: the frames belong to a guest that does not exist yet, and to no other; the direct map shows them.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + part.start().0) as *mut u8, 0, part.bytes() as usize) };
}

impl GuestMemory for GuestRam {
    #[inline]
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.host(gpa, into.len())?;
        // SAFETY: `host` checked the range, and no reference into it exists. `into` is the hypervisor's own memory,
        // never a guest's.
        unsafe { copy(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    #[inline]
    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
        let into = self.host(gpa, from.len())?;
        // SAFETY: as in `read`, the other way round.
        unsafe { copy(from.as_ptr(), into, from.len()) };
        Ok(())
    }

    #[inline]
    fn read_u64(&self, gpa: Gpa) -> Result<u64, OutOfRange> {
        let from = self.host(gpa, 8)?;
        let value;
        // SAFETY: `host` checked the range; it is one load, which the compiler can neither repeat nor leave out (see
        // `copy`).
        unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) from, options(nostack, preserves_flags, readonly)) };
        Ok(value)
    }

    #[cold]
    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, old: u64, new: u64) -> Result<bool, OutOfRange> {
        let at = self.host(gpa, size.bytes())?;
        let is_equal: u8;
        macro_rules! compare_exchange {
            ($instruction:literal) => {
                // SAFETY: `host` checked the range; it is one locked access, as a CPU's that walks the guest's tables
                // (see `copy`).
                unsafe {
                    asm!($instruction, "sete {is_equal}", at = in(reg) at, new = in(reg) new,
                        is_equal = out(reg_byte) is_equal, inout("rax") old => _, options(nostack));
                }
            };
        }
        match size {
            AccessSize::Dword => compare_exchange!("lock cmpxchg [{at}], {new:e}"),
            AccessSize::Qword => compare_exchange!("lock cmpxchg [{at}], {new}"),
            AccessSize::Byte | AccessSize::Word => return Err(OutOfRange { gpa, bytes: size.bytes() }),
        }
        Ok(is_equal != 0)
    }

    fn size_bytes(&self) -> u64 {
        self.slots.iter().map(|slot| slot.bytes).sum()
    }
}

impl Drop for GuestRam {
    fn drop(&mut self) {
        let frames = self.slots.iter_mut().filter_map(|slot| slot.frames.take());
        match self.is_kept.load(Ordering::Acquire) {
            true => frames.for_each(|frames| _ = frames.leak()),
            false => frames.for_each(self.source.release),
        }
    }
}
