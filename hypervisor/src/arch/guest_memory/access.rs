// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a guest's memory: read, written, and copied between guests.

use vm::addr::{AccessSize, Gpa};
use vm::memory::{GuestMemory, OutOfRange};

use super::copying::{compare_exchange, copy, load};
use super::{GuestRam, OutsideOf, Slot, on_demand};
use crate::arch::address::DIRECT_MAP;

/// Bytes of one part of a copy from or to memory on demand.
const PART_BYTES: usize = 1024;

impl GuestRam {
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
