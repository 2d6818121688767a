// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames as page tables, the host's and guests'.

use frames::FrameRange;
use paging::TableMemory;
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use super::frames::{FRAMES, release};
use crate::arch::address::{BOOT_MAPPED_BYTES, DIRECT_MAP};

/// Frames for page tables, zeroed, through the direct map. `limit` keeps them where the boot tables can show them.
pub struct TableFrames {
    limit: u64,
}

impl TableFrames {
    /// Tables anywhere in memory: after [`enter`](super::tables::enter).
    pub const fn anywhere() -> Self {
        Self { limit: u64::MAX }
    }

    /// Tables that the boot page tables show.
    pub const fn below_4_gib() -> Self {
        Self { limit: BOOT_MAPPED_BYTES }
    }
}

impl TableMemory for TableFrames {
    fn allocate(&mut self) -> Option<PhysAddr> {
        let range = FRAMES.lock().allocate_below(PAGE_BYTES, PageSize::Kib4, PhysAddr(self.limit)).ok()?;
        let frame = range.leak().start();
        // SAFETY: the frame was just allocated: no other code uses it, and the direct map shows it.
        unsafe { core::ptr::write_bytes((DIRECT_MAP + frame.0) as *mut u8, 0, PAGE_BYTES as usize) };
        Some(frame)
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: `table` is a table of ours (a whole frame in the direct map); the index is masked into it.
        unsafe { core::ptr::read_volatile(entry(table, index)) }
    }

    fn write(&mut self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: as in `read`; tables are changed by one CPU at a time (their owner's lock).
        unsafe { core::ptr::write_volatile(entry(table, index), value) }
    }

    fn free(&mut self, table: PhysAddr) {
        if let Some(range) = PhysRange::from_start(table, PAGE_BYTES).and_then(FrameRange::adopt) {
            release(range);
        }
    }
}

fn entry(table: PhysAddr, index: usize) -> *mut u64 {
    ((DIRECT_MAP + table.0) as *mut u64).wrapping_add(index & 511)
}
