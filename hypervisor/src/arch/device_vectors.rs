// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of each CPU for interrupts of PCI functions that guests have. The handler only notes that one has come; the
//! CPU's loop takes it from there. That way one that comes while an image takes over waits until the image knows its
//! function.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};

use super::cpu_local::cpu_local;
use super::percpu::PerCpu;

/// Vectors that functions may have: above the host's own, below those that end the host.
pub const VECTORS: RangeInclusive<u8> = 0x50..=0xdf;

const WORD_BITS: u8 = 64;
/// The words that have bits of [`VECTORS`].
const FIRST_WORD: u8 = *VECTORS.start() / WORD_BITS;
const WORDS: usize = (*VECTORS.end() / WORD_BITS - FIRST_WORD) as usize + 1;

/// A bit for each vector.
struct Bits([AtomicU64; WORDS]);

cpu_local! {
    /// Vectors that have come, and that the CPU's loop has not taken yet.
    static RAISED: Bits = Bits([const { AtomicU64::new(0) }; WORDS]);
}

/// In the handler: notes that it has come, one of [`VECTORS`]. The vCPU that runs is not entered before the loop has
/// taken it.
pub fn note(vector: u8) {
    let word = usize::from(vector / WORD_BITS).wrapping_sub(FIRST_WORD.into());
    if let Some(word) = RAISED.mine().0.get(word) {
        word.fetch_or(1 << (vector % WORD_BITS), Ordering::AcqRel);
        PerCpu::current().device_raised.store(true, Ordering::Release);
    }
}

/// Calls `each` with the calling CPU's vectors that have come since this was called last.
pub fn take(mut each: impl FnMut(u8)) {
    PerCpu::current().device_raised.store(false, Ordering::Release);
    for (number, word) in (FIRST_WORD..).zip(&RAISED.mine().0) {
        if word.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut bits = word.swap(0, Ordering::AcqRel);
        while bits != 0 {
            each(number * WORD_BITS + bits.trailing_zeros() as u8);
            bits &= bits - 1;
        }
    }
}
