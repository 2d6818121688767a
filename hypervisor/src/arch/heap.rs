// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heap: pieces of the direct map, the first one claimed at boot. It grows with guests and their devices, and keeps
//! what it has. No exit path allocates.
//!
//! It takes frames while it is locked: nothing may allocate while [`FRAMES`] is locked.

use core::alloc::Layout;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};

use spin::mutex::spin::SpinMutex;
use talc::TalcLock;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;
use units::PageSize;

use crate::arch::address::DIRECT_MAP;
use crate::arch::memory::FRAMES;

/// Bytes of the heap at first.
pub const HEAP_BYTES: u64 = 4 << 20;
/// The least by which it grows.
const GROWTH_BYTES: u64 = 1 << 20;
/// Beside what is allocated: the allocator's own, and what alignment takes.
const SLACK_BYTES: u64 = 64 << 10;
/// Tries to lock the ledger of memory: far longer than any owner holds it.
const TRIES: u32 = 100_000_000;

#[global_allocator]
static HEAP: TalcLock<SpinMutex<()>, Growing> = TalcLock::new(Growing);
/// Bytes that it has.
static CLAIMED: AtomicU64 = AtomicU64::new(0);

/// The heap's source: frames that are free.
#[derive(Debug)]
struct Growing;

// SAFETY: `acquire` allocates nothing and uses no allocator but the one that it is given.
unsafe impl Source for Growing {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let bytes = (layout.size() as u64 + layout.align() as u64 + SLACK_BYTES).next_multiple_of(GROWTH_BYTES);
        let start = frames(bytes).ok_or(())?;
        // SAFETY: the frames were just allocated for the heap, for ever, and are seen only through the direct map,
        // writable.
        let claimed = unsafe { talc.claim((DIRECT_MAP + start) as *mut u8, bytes as usize) };
        CLAIMED.fetch_add(bytes, Ordering::Relaxed);
        claimed.map(drop).ok_or(())
    }
}

/// Allocates frames for ever; returns where they are.
fn frames(bytes: u64) -> Option<u64> {
    for _ in 0..TRIES {
        if let Some(mut frames) = FRAMES.try_lock() {
            return frames.allocate(bytes, PageSize::Kib4).ok().map(|range| range.leak().start().0);
        }
        spin_loop();
    }
    None
}

/// Bytes of the heap now.
pub fn bytes() -> u64 {
    CLAIMED.load(Ordering::Relaxed)
}

/// Runs `inside` while the heap is locked: for a self-test.
#[cfg(feature = "faults")]
pub fn while_locked(inside: impl FnOnce()) {
    let _heap = HEAP.lock();
    inside();
}

/// Gives the heap its memory: `bytes` bytes at `start`, mapped, with no other owner, for ever.
pub fn claim(start: u64, bytes: u64) {
    // SAFETY: the frames were just allocated for the heap and are seen only through the direct map, writable.
    let claimed = unsafe { HEAP.lock().claim(start as *mut u8, bytes as usize) };
    assert!(claimed.is_some(), "the heap's memory is large enough for its own bookkeeping");
    CLAIMED.fetch_add(bytes, Ordering::Relaxed);
}
