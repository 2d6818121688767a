// SPDX-License-Identifier: MIT OR Apache-2.0
//! All memory behind the program.

use crate::wrong::Wrong;
use core::ops::Range;
use tiny::boot::free_memory;

/// Bytes checked, or marked, at once.
const STEP: usize = 8;

/// Unused memory is zero.
pub fn is_fresh() -> Result<(), Wrong> {
    let free = free_memory();
    if free.is_empty() {
        return Err(Wrong { what: "free memory from", item: free.start, found: 0, wanted: 1 });
    }
    let stained = free.step_by(STEP).map(|address| (address, read(address))).find(|&(_, found)| found != 0);
    stained.map_or(Ok(()), |(item, found)| Err(Wrong { what: "memory at", item, found, wanted: 0 }))
}

/// Leaves a mark on all of it: each address, and the seed.
pub fn stain(seed: u64) {
    stain_part(seed, free_memory());
}

/// Leaves the mark on a part of it.
pub fn stain_part(seed: u64, part: Range<u64>) {
    part.step_by(STEP).for_each(|address| write(address, (seed + 1) << 32 | address));
}

/// Returns whether so many words from `at` on still hold the mark, and where to check next. It begins again at the end
/// of the part.
pub fn holds(seed: u64, part: &Range<u64>, at: u64, words: u64) -> Result<u64, Wrong> {
    let end = part.end.min(at + words * STEP as u64);
    for address in (at..end).step_by(STEP) {
        let (found, wanted) = (read(address), (seed + 1) << 32 | address);
        if found != wanted {
            return Err(Wrong { what: "memory at", item: address, found, wanted });
        }
    }
    Ok(if end < part.end { end } else { part.start })
}

fn read(address: u64) -> u64 {
    // SAFETY: free memory is mapped, and no object of Rust's.
    unsafe { (address as *const u64).read_volatile() }
}

fn write(address: u64, value: u64) {
    // SAFETY: as read.
    unsafe { (address as *mut u64).write_volatile(value) };
}
