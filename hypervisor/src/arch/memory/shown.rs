// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that is read or written only where the host's page tables show it.

use units::{PAGE_BYTES, PhysRange};

use super::tables::with_host_tables;
use crate::arch::address::DIRECT_MAP;
use crate::arch::image;

/// Returns what a loader's module holds; `None` unless all of it is in the direct map, and none of it is the image,
/// which changes.
pub fn module_bytes(range: PhysRange) -> Option<&'static [u8]> {
    let last = range.end().0.checked_sub(1)?;
    let mut pages = (range.start().0..=last).step_by(PAGE_BYTES as usize).chain([last]);
    if range.intersection(image::frames()).is_some() || !pages.all(is_shown) {
        return None;
    }
    // SAFETY: all of it is mapped; it is not the image, and the module's frames are reserved for ever, so no code
    // writes them.
    Some(unsafe { core::slice::from_raw_parts((DIRECT_MAP + range.start().0) as *const u8, range.bytes() as usize) })
}

/// Writes a word of the first page of memory, where the memory map calls it usable.
pub fn write_low(physical: u64, value: u32) {
    if physical < PAGE_BYTES - 4 && is_shown(physical) {
        // SAFETY: mapped, in the first page, which is reserved from the frame allocator.
        unsafe { core::ptr::write_unaligned((DIRECT_MAP + physical) as *mut u32, value) };
    }
}

fn is_shown(physical: u64) -> bool {
    with_host_tables(|tables, frames| tables.translate(frames, DIRECT_MAP + physical).is_some()).unwrap_or(false)
}
