// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MSR bitmap that all guests share: they own the same registers.

use spin::Once;
use units::PhysAddr;
use vmx::permission::{MSR_BITMAP_BYTES, fill_msr_bitmap};

use crate::arch::address::DIRECT_MAP;
use crate::arch::memory::permanent_frames;
use crate::arch::unavailable::OutOfMemory;

static BITMAP: Once<PhysAddr> = Once::new();

/// Makes it, once.
pub fn prepare() -> Result<(), OutOfMemory> {
    BITMAP.try_call_once(make).map(|_| ())
}

/// Physical address of the bitmap, once made.
pub fn get() -> Option<PhysAddr> {
    BITMAP.get().copied()
}

fn make() -> Result<PhysAddr, OutOfMemory> {
    let at = permanent_frames(MSR_BITMAP_BYTES as u64).ok_or(OutOfMemory)?;
    // SAFETY: the frames were just allocated; no guest runs on this bitmap yet.
    let bytes = unsafe { core::slice::from_raw_parts_mut((DIRECT_MAP + at.0) as *mut u8, MSR_BITMAP_BYTES) };
    fill_msr_bitmap(bytes, vm::cpu::msr::OWNED_BY_GUEST);
    Ok(at)
}
