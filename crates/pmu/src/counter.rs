// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters, sets of them, and their widths.

/// A counter of a CPU: general ones from 0, those of fixed purpose from [`Self::FIRST_FIXED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter(u8);

impl Counter {
    /// Number of the first fixed-function counter: as in Intel's global registers.
    pub const FIRST_FIXED: u8 = 32;

    /// A general counter; numbers are below 32.
    #[inline]
    pub const fn general(number: u8) -> Self {
        Self(number % Self::FIRST_FIXED)
    }

    /// A fixed-function counter; numbers are below 32.
    #[inline]
    pub const fn fixed(number: u8) -> Self {
        Self(number % Self::FIRST_FIXED + Self::FIRST_FIXED)
    }

    /// Its place in a [`CounterSet`], 0–63.
    #[inline]
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Returns its number among the fixed-function counters, if it is one.
    #[inline]
    pub const fn fixed_number(self) -> Option<u8> {
        self.0.checked_sub(Self::FIRST_FIXED)
    }
}

/// A set of counters, as Intel's global registers have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CounterSet(pub u64);

impl CounterSet {
    /// No counter.
    pub const EMPTY: Self = Self(0);

    /// The first `general` general counters and the first `fixed` fixed-function ones, at most 32 each.
    pub const fn first(general: u8, fixed: u8) -> Self {
        const fn ones(count: u8) -> u64 {
            if count >= 32 { u32::MAX as u64 } else { (1 << count) - 1 }
        }
        Self(ones(general) | ones(fixed) << Counter::FIRST_FIXED)
    }

    /// The set of one counter.
    #[inline]
    pub const fn only(counter: Counter) -> Self {
        Self(1 << counter.0)
    }

    /// Returns whether a counter is in the set.
    #[inline]
    pub const fn contains(self, counter: Counter) -> bool {
        self.0 & Self::only(counter).0 != 0
    }

    /// Returns whether the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The counters in both sets.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The counters in either set.
    #[inline]
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The counters that are not in the other set.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The lowest counter.
    #[inline]
    pub const fn lowest(self) -> Option<Counter> {
        if self.0 == 0 { None } else { Some(Counter(self.0.trailing_zeros() as u8)) }
    }
}

impl Iterator for CounterSet {
    type Item = Counter;

    /// Removes the lowest counter.
    #[inline]
    fn next(&mut self) -> Option<Counter> {
        let lowest = self.lowest()?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

/// Number of bits of a counter: it overflows from all ones to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u8);

impl Width {
    /// Width of today's CPUs, and of the counters that guests see.
    pub const USUAL: Self = Self(48);

    /// A width from 1 to 63 bits; others become the nearest.
    pub const fn of_bits(bits: u8) -> Self {
        Self(if bits == 0 {
            1
        } else if bits > 63 {
            63
        } else {
            bits
        })
    }

    /// In bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The largest value.
    #[inline]
    pub const fn mask(self) -> u64 {
        (1 << self.0) - 1
    }

    /// Returns how many more make the counter overflow: from 1 to [`Self::mask`] + 1.
    #[inline]
    pub const fn until_overflow(self, value: u64) -> u64 {
        self.mask() - (value & self.mask()) + 1
    }

    /// The value after `more`, and whether it has overflowed on the way (several times count as one).
    #[inline]
    pub const fn advance(self, value: u64, more: u64) -> (u64, bool) {
        (value.wrapping_add(more) & self.mask(), more >= self.until_overflow(value))
    }
}
