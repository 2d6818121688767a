// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers, the same in every run.

use core::ops::RangeInclusive;

/// A generator of 64-bit numbers: a counter, mixed (SplitMix64; Steele, Lea and Flood 2014).
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number in the range, each about equally likely.
    pub fn within(&mut self, range: &RangeInclusive<u64>) -> u64 {
        let width = u128::from(range.end().saturating_sub(*range.start())) + 1;
        range.start() + ((u128::from(self.next_number()) * width) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_within_their_range_and_repeat_with_their_seed() {
        let (mut one, mut two) = (Random(1), Random(1));
        for _ in 0..1000 {
            let number = one.within(&(5..=9));
            assert!((5..=9).contains(&number) && number == two.within(&(5..=9)));
        }
        assert_eq!(Random(3).within(&(7..=7)), 7);
        Random(4).within(&(0..=u64::MAX));
    }
}
