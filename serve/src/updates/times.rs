// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of a host's updates, as its timeline shows them.

use std::collections::BTreeMap;

use baton::timeline::Run;
use baton::timeline::host::{UpdateTimes, blackout_of, update_of};
use prometheus_client::metrics::histogram::Histogram;

#[cfg(test)]
mod tests;

/// Bounds of the blackout's histogram, in seconds.
const BLACKOUTS: [f64; 12] = [50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 0.1, 1.0, 10.0];
/// Bounds of the phases' histograms, in seconds: a step of the blackout is short, the preparation is not.
const PHASES: [f64; 12] = [5e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 5e-3, 20e-3, 0.1, 1.0, 10.0];
/// The phase before the blackout.
const PREPARATION: &str = "preparation";
/// The most phases that have a histogram: names are a host's.
const MAX_PHASES: usize = 24;

/// Times of all updates since the service was started.
#[derive(Debug)]
pub struct Times {
    /// Updates that the timeline has shown.
    pub seen: u64,
    /// Their blackouts in seconds.
    pub blackouts: Histogram,
    /// The longest time of any CPU in each phase, in seconds: the preparation, and the blackout's steps.
    pub phases: BTreeMap<String, Histogram>,
    /// The last one.
    pub last: Option<UpdateTimes>,
    /// The longest time in the last blackout of any CPU in each step, in microseconds.
    pub last_phases: BTreeMap<String, f64>,
    newest: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            seen: 0,
            blackouts: Histogram::new(BLACKOUTS),
            phases: BTreeMap::new(),
            last: None,
            last_phases: BTreeMap::new(),
            newest: 0,
        }
    }
}

impl Times {
    /// Notes the updates in the host's timeline that are new.
    pub fn observe(&mut self, runs: &[Run]) {
        for run in runs {
            let Some(times) = update_of(run).filter(|times| times.generation > self.newest) else { continue };
            self.newest = times.generation;
            self.seen += 1;
            self.blackouts.observe(times.blackout_us / 1e6);
            self.last = Some(times);
            self.last_phases.clear();
            let spans = blackout_of(run).into_iter().flat_map(|run| run.tracks).flat_map(|track| track.spans);
            for span in spans {
                let longest = self.last_phases.entry(span.name).or_default();
                *longest = longest.max(span.length_us);
            }
            self.observe_phases(times.preparation_us);
        }
    }

    fn observe_phases(&mut self, preparation_us: f64) {
        let steps = self.last_phases.iter().map(|(name, us)| (name.as_str(), *us));
        for (name, us) in [(PREPARATION, preparation_us)].into_iter().chain(steps) {
            if self.phases.contains_key(name) || self.phases.len() < MAX_PHASES {
                let new = || Histogram::new(PHASES);
                self.phases.entry(name.to_owned()).or_insert_with(new).observe(us / 1e6);
            }
        }
    }

    /// The host was powered on again: its generations begin with 1.
    pub fn begin_again(&mut self) {
        self.newest = 0;
    }
}
