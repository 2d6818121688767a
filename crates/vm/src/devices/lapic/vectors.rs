// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of 256 interrupt vectors.

/// A set of vectors: bit `v % 64` of word `v / 64` is vector `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VectorSet(pub [u64; 4]);

impl VectorSet {
    /// No vector.
    pub const EMPTY: Self = Self([0; 4]);

    /// Returns whether `vector` is in the set.
    #[inline]
    pub const fn contains(&self, vector: u8) -> bool {
        self.0[(vector >> 6) as usize] & Self::bit(vector) != 0
    }

    /// Puts `vector` in.
    #[inline]
    pub const fn insert(&mut self, vector: u8) {
        self.0[(vector >> 6) as usize] |= Self::bit(vector);
    }

    /// Takes `vector` out.
    #[inline]
    pub const fn remove(&mut self, vector: u8) {
        self.0[(vector >> 6) as usize] &= !Self::bit(vector);
    }

    /// The highest vector in the set.
    #[inline]
    pub const fn highest(&self) -> Option<u8> {
        let mut word = 4;
        while word > 0 {
            word -= 1;
            if self.0[word] != 0 {
                return Some((word as u8) << 6 | self.0[word].ilog2() as u8);
            }
        }
        None
    }

    /// Returns whether `vector` is in the set and no other.
    #[inline]
    pub fn is_only(&self, vector: u8) -> bool {
        let mut only = Self::EMPTY;
        only.insert(vector);
        *self == only
    }

    /// One of the eight 32-bit registers that show the set, lowest vectors first.
    pub const fn register(&self, index: usize) -> u32 {
        (self.0[index / 2 % 4] >> (index % 2 * 32)) as u32
    }

    #[inline]
    const fn bit(vector: u8) -> u64 {
        1 << (vector & 63)
    }
}
