// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heap: one piece of the direct map, claimed once. No exit path allocates.

use spin::mutex::spin::SpinMutex;
use talc::TalcLock;
use talc::source::Manual;

/// Bytes of the heap.
pub const HEAP_BYTES: u64 = 4 << 20;

#[global_allocator]
static HEAP: TalcLock<SpinMutex<()>, Manual> = TalcLock::new(Manual);

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
}
