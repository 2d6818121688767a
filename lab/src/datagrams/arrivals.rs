// SPDX-License-Identifier: MIT OR Apache-2.0
//! When which datagram arrived.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

/// The datagrams of a stream, in the order of their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// The time of each, on the receiver's clock.
    times: Vec<Duration>,
    /// The number of each.
    numbers: Vec<u64>,
}

impl Arrivals {
    /// Adds one that arrived at `at`, which is no earlier than any before.
    pub fn add(&mut self, at: Duration, number: u64) {
        self.times.push(at);
        self.numbers.push(number);
    }

    /// Returns how many arrived, those that arrived twice included.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the longest time in `window` in which nothing arrived. A silence that reaches beyond the window counts
    /// as far as it is inside.
    pub fn longest_silence(&self, window: Range<Duration>) -> Duration {
        let first = self.times.partition_point(|&at| at < window.start);
        let behind = self.times.partition_point(|&at| at < window.end);
        let inside = self.times.get(first..behind).unwrap_or_default();
        let starts = [window.start].into_iter().chain(inside.iter().copied());
        let ends = inside.iter().copied().chain([window.end]);
        starts.zip(ends).map(|(start, end)| end.saturating_sub(start)).max().unwrap_or_default()
    }

    /// Returns how many arrived in `window`.
    pub fn count_in(&self, window: Range<Duration>) -> usize {
        let [first, behind] = [window.start, window.end].map(|end| self.times.partition_point(|&at| at < end));
        behind.saturating_sub(first)
    }

    /// Returns the numbers that never arrived, between the lowest and the highest that did.
    pub fn lost(&self) -> Vec<Range<u64>> {
        let numbers: BTreeSet<u64> = self.numbers.iter().copied().collect();
        let pairs = numbers.iter().zip(numbers.iter().skip(1));
        pairs.filter(|&(before, after)| after - before > 1).map(|(before, after)| before + 1..*after).collect()
    }

    /// Returns how many numbers [`Self::lost`] names.
    pub fn lost_count(&self) -> u64 {
        self.lost().into_iter().map(|range| range.end - range.start).sum()
    }

    /// Returns how many arrived a second time.
    pub fn repeated(&self) -> usize {
        self.count() - self.numbers.iter().collect::<BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests;
