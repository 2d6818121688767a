// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time of a host's CPUs by its user, from readings of the host's own counters.
//!
//! The host begins its counters again in each image, on a CPU that was offline, and after five seconds without a
//! request. The sums here go on; time in which no counter ran is missing from them.

use std::collections::BTreeMap;

use baton::top::Ticks;
use serde::Serialize;
use utoipa::ToSchema;
use wire::CpuPerf;

#[cfg(test)]
mod tests;

/// Shares of a CPU's time. Together they are 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct CpuShares {
    /// Guests executed.
    pub guests: f64,
    /// The host executed.
    pub host: f64,
    /// The CPU waited for an interrupt.
    pub idle: f64,
}

/// CPU time of one CPU, in seconds since the service read it first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// Seconds in which guests executed.
    pub guests: f64,
    /// Seconds in which the host executed.
    pub host: f64,
    /// Seconds in which the CPU waited for an interrupt.
    pub idle: f64,
    /// Shares of the last interval; `None` while there is none.
    pub last: Option<CpuShares>,
}

/// The sums of all CPUs of a host.
#[derive(Debug, Default)]
pub struct CpuTimes {
    before: BTreeMap<u32, CpuPerf>,
    sums: BTreeMap<u32, CpuTime>,
}

impl CpuTime {
    /// Returns the shares of the time between two sums; `None` if nothing was counted in between.
    pub fn shares_since(&self, before: &Self) -> Option<CpuShares> {
        let parts = [self.guests - before.guests, self.host - before.host, self.idle - before.idle];
        let all: f64 = parts.iter().sum();
        let [guests, host, idle] = parts.map(|part| part / all);
        (all > 0.0 && parts.iter().all(|part| *part >= 0.0)).then_some(CpuShares { guests, host, idle })
    }

    fn add(&mut self, ticks: Ticks, tsc_hz: u64) {
        let seconds = |ticks: u64| ticks as f64 / tsc_hz.max(1) as f64;
        let before = *self;
        self.guests += seconds(ticks.guests);
        self.host += seconds(ticks.host);
        self.idle += seconds(ticks.idle);
        self.last = self.shares_since(&before);
    }
}

impl CpuTimes {
    /// Adds the figures of all CPUs that are online. A CPU without figures has no shares, but keeps its sums.
    pub fn note(&mut self, figures: BTreeMap<u32, CpuPerf>, tsc_hz: u64) {
        for (cpu, time) in &mut self.sums {
            time.last = time.last.filter(|_| figures.contains_key(cpu));
        }
        for (cpu, now) in &figures {
            let time = self.sums.entry(*cpu).or_default();
            // Without figures before them, the ticks may be from before the service was started.
            let Some(before) = self.before.get(cpu) else { continue };
            let ticks = match before.began_ns == now.began_ns {
                true => Ticks::between(before, now),
                false => Ticks::since_begun(now),
            };
            ticks.into_iter().for_each(|ticks| time.add(ticks, tsc_hz));
        }
        self.before = figures;
    }

    /// Clears the last figures: the host was started again.
    pub fn begin_again(&mut self) {
        self.before.clear();
        self.sums.values_mut().for_each(|time| time.last = None);
    }

    /// Removes the sums of CPUs that the host does not list.
    pub fn retain(&mut self, is_listed: impl Fn(u32) -> bool) {
        self.sums.retain(|cpu, _| is_listed(*cpu));
    }

    /// Returns the sums by CPU.
    pub fn sums(&self) -> &BTreeMap<u32, CpuTime> {
        &self.sums
    }
}
