// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each CPU's vectors for interrupts of PCI functions that guests have. The handler only notes that one has come; the
//! CPU's loop takes it from there.

use core::array;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU32, Ordering};

use super::cpu_local::cpu_local;
use super::percpu::PerCpu;

/// Vectors that functions may have: below those that end the host, above the host's own.
pub const VECTORS: RangeInclusive<u8> = 0x50..=0xdf;

const WORD_BITS: usize = 32;
const WORDS: usize = 256 / WORD_BITS;

/// A bit for each vector.
struct Bits([AtomicU32; WORDS]);

cpu_local! {
    /// Vectors that belong to a function.
    static CLAIMED: Bits = Bits::NONE;
    /// Those of them that have come, and that the CPU's loop has not taken yet.
    static RAISED: Bits = Bits::NONE;
}

impl Bits {
    const NONE: Self = Self([const { AtomicU32::new(0) }; WORDS]);

    fn of(&self, vector: u8) -> (&AtomicU32, u32) {
        (&self.0[usize::from(vector) / WORD_BITS], 1 << (usize::from(vector) % WORD_BITS))
    }

    fn has(&self, vector: u8) -> bool {
        let (word, bit) = self.of(vector);
        word.load(Ordering::Acquire) & bit != 0
    }

    /// Sets it; returns whether it was not set.
    fn set(&self, vector: u8) -> bool {
        let (word, bit) = self.of(vector);
        word.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    fn clear(&self, vector: u8) {
        let (word, bit) = self.of(vector);
        word.fetch_and(!bit, Ordering::AcqRel);
    }
}

/// A vector of this CPU's that was nobody's; `None` if there is none left, or no such CPU.
pub fn claim(cpu: u32) -> Option<u8> {
    let claimed = CLAIMED.of(cpu)?;
    VECTORS.into_iter().find(|&vector| claimed.set(vector))
}

/// Takes a vector over that belonged to a function in the image before. Returns whether it was free here.
pub fn adopt(cpu: u32, vector: u8) -> bool {
    VECTORS.contains(&vector) && CLAIMED.of(cpu).is_some_and(|claimed| claimed.set(vector))
}

/// The vector is nobody's again; nothing sends it any more.
pub fn release(cpu: u32, vector: u8) {
    CLAIMED.of(cpu).into_iter().chain(RAISED.of(cpu)).for_each(|bits| bits.clear(vector));
}

/// In the handler: notes that it has come. Returns whether it is a function's.
pub fn note(vector: u8) -> bool {
    let is_claimed = CLAIMED.mine().has(vector);
    if is_claimed {
        RAISED.mine().set(vector);
        PerCpu::current().work_pending.store(true, Ordering::Relaxed);
    }
    is_claimed
}

/// The calling CPU's vectors that have come since this was called last.
pub fn take() -> impl Iterator<Item = u8> {
    let words: [u32; WORDS] = array::from_fn(|index| match RAISED.mine().0[index].load(Ordering::Relaxed) {
        0 => 0,
        _ => RAISED.mine().0[index].swap(0, Ordering::AcqRel),
    });
    VECTORS.filter(move |&vector| words[usize::from(vector) / WORD_BITS] >> (usize::from(vector) % WORD_BITS) & 1 != 0)
}
