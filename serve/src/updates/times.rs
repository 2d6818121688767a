// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of a host's updates, as its timeline shows them.

use std::collections::BTreeMap;

use baton::timeline::Run;
use baton::timeline::host::{blackout_of, update_of};
use serde::{Deserialize, Serialize};

use super::histogram::{Buckets, Histogram};

#[cfg(test)]
mod tests;

/// Bounds of the blackout's histogram, in nanoseconds.
const BLACKOUTS: [u64; 12] = [
    50_000,
    100_000,
    200_000,
    400_000,
    800_000,
    1_600_000,
    3_200_000,
    6_400_000,
    12_800_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];
/// Bounds of the phases' histograms, likewise: a step of the blackout is short, the preparation is not.
const PHASES: [u64; 12] = [
    5_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    5_000_000,
    20_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];
/// The phase before the blackout.
const PREPARATION: &str = "preparation";
/// The most phases that have a histogram: names are a host's.
const MAX_PHASES: usize = 24;

/// Times of all updates of a host since the history began.
///
/// The timeline shows an update for as long as the host runs. One is counted once: since the machine was powered on,
/// its generation is higher than that of all updates before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Updates that the timeline has shown.
    pub seen: u64,
    /// The last one.
    pub last: Option<Last>,
    blackouts: Histogram,
    phases: BTreeMap<String, Histogram>,
    /// The generation of the last one, or 0 if there was none since the machine was powered on.
    newest: u64,
}

/// Times of the last update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Last {
    /// Nanoseconds in which it was prepared while guests ran.
    pub preparation_ns: u64,
    /// Nanoseconds in which no guest ran.
    pub blackout_ns: u64,
    /// The longest time in the blackout of any CPU in each step, in nanoseconds.
    pub steps: BTreeMap<String, u64>,
}

impl Times {
    /// Notes the updates in the host's timeline that are new.
    pub fn observe(&mut self, runs: &[Run]) {
        for run in runs {
            let Some(times) = update_of(run).filter(|times| times.generation > self.newest) else { continue };
            self.newest = times.generation;
            self.seen += 1;
            let last = Last {
                preparation_ns: nanoseconds(times.preparation_us),
                blackout_ns: nanoseconds(times.blackout_us),
                steps: steps(run),
            };
            self.blackouts.observe(last.blackout_ns, &BLACKOUTS);
            self.observe_phases(&last);
            self.last = Some(last);
        }
    }

    fn observe_phases(&mut self, last: &Last) {
        let steps = last.steps.iter().map(|(name, ns)| (name.as_str(), *ns));
        for (name, ns) in [(PREPARATION, last.preparation_ns)].into_iter().chain(steps) {
            if self.phases.contains_key(name) || self.phases.len() < MAX_PHASES {
                self.phases.entry(name.to_owned()).or_default().observe(ns, &PHASES);
            }
        }
    }

    /// Returns the histogram of blackouts.
    pub fn blackouts(&self) -> Buckets {
        self.blackouts.buckets(&BLACKOUTS)
    }

    /// Returns the histogram of each phase, by the longest time of any CPU: the preparation, and the blackout's steps.
    pub fn phases(&self) -> impl Iterator<Item = (&str, Buckets)> {
        self.phases.iter().map(|(name, times)| (name.as_str(), times.buckets(&PHASES)))
    }

    /// The host was powered on again: its generations begin with 1.
    pub fn begin_again(&mut self) {
        self.newest = 0;
    }
}

/// Returns the longest time of any CPU in each step of an update's blackout, in nanoseconds.
fn steps(run: &Run) -> BTreeMap<String, u64> {
    let mut steps = BTreeMap::<String, u64>::new();
    for span in blackout_of(run).into_iter().flat_map(|run| run.tracks).flat_map(|track| track.spans) {
        let longest = steps.entry(span.name).or_default();
        *longest = nanoseconds(span.length_us).max(*longest);
    }
    steps
}

/// Returns a duration in whole nanoseconds: 0 for one that is negative or no number.
fn nanoseconds(us: f64) -> u64 {
    (us * 1e3).round() as u64
}
