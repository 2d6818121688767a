// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram of durations that the history can keep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;
/// The bound of a duration that is longer than all others.
const NONE: u64 = u64::MAX;

/// A histogram of durations, in nanoseconds.
///
/// All of its numbers are integers. A sum of fractions may come back from JSON a little lower, which Prometheus takes
/// for a counter that began again at zero. The histogram of prometheus-client cannot be given a sum and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Histogram {
    /// The number of durations by the lowest bound that they did not exceed, also by bounds of another release.
    counts: BTreeMap<u64, u64>,
    sum_ns: u64,
}

/// A histogram as metrics have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// The sum in seconds.
    pub sum: f64,
    /// The number of durations.
    pub count: u64,
    /// The upper bound of each bucket in seconds, and the number of durations in this bucket alone.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Adds a duration; `bounds` rise.
    pub fn observe(&mut self, ns: u64, bounds: &[u64]) {
        let bound = bounds.iter().copied().find(|bound| ns <= *bound).unwrap_or(NONE);
        *self.counts.entry(bound).or_default() += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Returns its buckets by these bounds, which rise. A bound of another release counts for the next higher one.
    pub fn buckets(&self, bounds: &[u64]) -> Buckets {
        let mut rest = self.counts.iter().peekable();
        let mut count_up_to = |bound: u64| {
            let mut count = 0;
            while let Some((_, more)) = rest.next_if(|(kept, _)| **kept <= bound) {
                count += more;
            }
            count
        };
        let mut buckets: Vec<_> = bounds.iter().map(|bound| (seconds(*bound), count_up_to(*bound))).collect();
        buckets.push((f64::INFINITY, count_up_to(NONE)));
        Buckets { sum: seconds(self.sum_ns), count: self.counts.values().sum(), buckets }
    }
}

/// Returns a duration in seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND
}
