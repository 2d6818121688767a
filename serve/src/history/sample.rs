// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of a host's metrics, from two readings of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use wire::{CpuState, VcpuPerf};

use crate::host::{CpuShares, CpuTime, Snapshot};

#[cfg(test)]
mod tests;

/// The metrics, with the meaning of each.
pub const METRICS: [(&str, &str); 9] = [
    ("guests_cpu", "CPU time of all guests: 1 is one CPU, all the time"),
    ("guest_cpu", "CPU time of a guest, likewise"),
    ("guest_wait", "time for which vCPUs of a guest waited for a CPU, likewise"),
    ("guest_exits", "exits of a guest in a second"),
    ("cpus_guests", "time of all CPUs that guests had: 1 is one CPU, all the time"),
    ("cpus_host", "time of all CPUs that the host had, likewise"),
    ("cpus_idle", "time in which CPUs were idle, likewise"),
    ("cpus_online", "CPUs online"),
    ("memory_free", "memory that no guest has, in bytes"),
];

/// Values by metric, and then by guest; those of the host have an empty name.
pub type Sample = BTreeMap<String, BTreeMap<String, f64>>;

/// Takes samples at intervals.
#[derive(Debug)]
pub struct Sampler {
    interval: Duration,
    before: Option<(Instant, Snapshot)>,
}

impl Sampler {
    /// Returns a sampler with this interval.
    pub fn new(interval: Duration) -> Self {
        Self { interval, before: None }
    }

    /// Takes a sample, if it is time for one.
    pub fn sample(&mut self, at: Instant, now: &Snapshot) -> Option<Sample> {
        let Some((since, before)) = &self.before else {
            self.before = Some((at, now.clone()));
            return None;
        };
        if at.saturating_duration_since(*since) < self.interval {
            return None;
        }
        let sample = between(before, now);
        self.before = Some((at, now.clone()));
        Some(sample)
    }

    /// The host was lost: its counts may begin again.
    pub fn begin_again(&mut self) {
        self.before = None;
    }
}

/// Returns the changes between two readings. Counts that have fallen were reset, and are left out.
fn between(before: &Snapshot, now: &Snapshot) -> Sample {
    let mut sample = Sample::new();
    let mut set = |metric: &str, of: &str, value: f64| {
        sample.entry(metric.to_owned()).or_default().insert(of.to_owned(), value);
    };
    let mut cpu = BTreeMap::<&str, (f64, f64)>::new();
    for ((guest, vcpu), figures) in &now.vcpus {
        let Some(shares) = before.vcpus.get(&(guest.clone(), *vcpu)).and_then(|had| shares(had, figures)) else {
            continue;
        };
        let sum = cpu.entry(guest).or_default();
        *sum = (sum.0 + shares.0, sum.1 + shares.1);
    }
    set("guests_cpu", "", cpu.values().map(|(ran, _)| ran).sum());
    for (guest, (ran, waited)) in cpu {
        set("guest_cpu", guest, ran);
        set("guest_wait", guest, waited);
    }
    for (guest, rate) in exit_rates(before, now) {
        set("guest_exits", guest, rate);
    }
    for (metric, share) in cpu_shares(before, now) {
        set(metric, "", share);
    }
    set("cpus_online", "", now.cpus.iter().filter(|cpu| cpu.state == CpuState::Online).count() as f64);
    if let Some(info) = &now.info {
        set("memory_free", "", info.memory_free_bytes as f64);
    }
    sample
}

/// Returns a vCPU's shares of the time between two figures: running and waiting.
fn shares(before: &VcpuPerf, now: &VcpuPerf) -> Option<(f64, f64)> {
    let time_ns = now.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0)? as f64;
    let ran = now.ran_ns.checked_sub(before.ran_ns)? as f64;
    let waited = now.waited_ns.checked_sub(before.waited_ns)? as f64;
    Some((ran / time_ns, waited / time_ns))
}

/// Returns the shares of all CPUs' time, added up; none if no CPU was counted.
fn cpu_shares(before: &Snapshot, now: &Snapshot) -> Vec<(&'static str, f64)> {
    let of = |(cpu, time): (&u32, &CpuTime)| time.shares_since(before.cpu_times.get(cpu)?);
    let all: Vec<CpuShares> = now.cpu_times.iter().filter_map(of).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let sum = |part: fn(&CpuShares) -> f64| all.iter().map(part).sum();
    vec![
        ("cpus_guests", sum(|shares| shares.guests)),
        ("cpus_host", sum(|shares| shares.host)),
        ("cpus_idle", sum(|shares| shares.idle)),
    ]
}

fn exit_rates<'s>(before: &Snapshot, now: &'s Snapshot) -> Vec<(&'s str, f64)> {
    let uptime = |snapshot: &Snapshot| snapshot.info.as_ref().map(|info| info.uptime_ns);
    let time_ns = uptime(now).zip(uptime(before)).and_then(|(now, before)| now.checked_sub(before));
    let Some(time_ns) = time_ns.filter(|ns| *ns > 0) else { return Vec::new() };
    let rate = |name: &str, total: u64| {
        let had = before.guests.iter().find(|guest| guest.name == name)?.exits_total;
        Some(total.checked_sub(had)? as f64 * 1e9 / time_ns as f64)
    };
    let guests = now.guests.iter();
    guests.filter_map(|guest| Some((guest.name.as_str(), rate(&guest.name, guest.exits_total)?))).collect()
}
