// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimate of the difference of two counters, from questions and answers.

/// A difference between two counters, and how wrong it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Ticks to add to the asker's counter to get the answerer's.
    pub offset: i64,
    /// The truth lies within this of it.
    pub error: u64,
}

impl Estimate {
    /// From one question: asked and answered by the asker's counter, and the value of the other's in between. The other
    /// read its counter at some moment of the round trip, so the middle is wrong by half of it at most.
    pub const fn from_round(asked: u64, other: u64, answered: u64) -> Self {
        let round_trip = answered.wrapping_sub(asked);
        let middle = asked.wrapping_add(round_trip / 2);
        Self { offset: other.wrapping_sub(middle) as i64, error: round_trip / 2 + 1 }
    }

    /// The more certain of two.
    pub const fn better_of(self, other: Self) -> Self {
        if other.error < self.error { other } else { self }
    }

    /// Returns whether the counters may well be equal.
    pub const fn is_agreement(self) -> bool {
        self.offset.unsigned_abs() <= self.error
    }
}
