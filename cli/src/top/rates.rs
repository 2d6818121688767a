// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares and rates between two readings. Counts that have fallen were reset: they give none.

use std::cmp::Ordering;

use clap::ValueEnum;
use serde::Serialize;
use wire::{CpuPerf, CpuState, ExitCount, ExitKind, HostInfo, VcpuPerf, VmInfo, VmState};

use super::{Reading, Ticks};

#[cfg(test)]
mod tests;

/// The share of time from which on a vCPU counts as one that waits.
const WAITS: f64 = 0.01;

/// The shares and rates between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    /// The host.
    pub host: HostRow,
    /// Its CPUs.
    pub cpus: Vec<CpuRow>,
    /// Its guests.
    pub guests: Vec<GuestRow>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostRow {
    /// Baton's version.
    pub version: String,
    /// Images that have run since the machine was powered on.
    pub generation: u64,
    /// Seconds since the host was entered.
    pub uptime_s: f64,
    /// All its memory.
    pub memory_total_bytes: u64,
    /// Memory that is free.
    pub memory_free_bytes: u64,
}

/// A CPU: parts of its time, 1 for all of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuRow {
    /// Its number.
    pub cpu: u32,
    /// Its state.
    pub state: CpuState,
    /// Time in guests.
    pub guest: Option<f64>,
    /// The host's own time.
    pub host: Option<f64>,
    /// Time without work.
    pub idle: Option<f64>,
    /// The vCPUs that are on it, as `web/0`.
    pub vcpus: Vec<String>,
}

/// A guest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuestRow {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: VmState,
    /// Its vCPUs.
    pub vcpus: u32,
    /// Memory that it sees.
    pub memory_bytes: u64,
    /// CPU time of its vCPUs together: 1 is one CPU, all the time.
    pub cpu: Option<f64>,
    /// Time for which they waited for a CPU, likewise.
    pub wait: Option<f64>,
    /// vCPUs that waited for a hundredth of the time or more, with their shares.
    pub waiting: Vec<Waiting>,
    /// Exits in a second.
    pub exits_per_s: Option<f64>,
    /// Exits in a second by kind, most first.
    pub exits: Vec<ExitRate>,
}

/// A vCPU that waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// Its number.
    pub vcpu: u32,
    /// Its part of the time.
    pub share: f64,
}

/// Exits of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ExitRate {
    /// The kind.
    pub kind: ExitKind,
    /// Exits in a second.
    pub per_s: f64,
}

/// The order of guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By CPU time, most first.
    #[default]
    Cpu,
    /// By waiting time, most first.
    Wait,
    /// By exits, most first.
    Exits,
    /// By memory, most first.
    Memory,
    /// By name.
    Name,
}

/// Returns the shares and rates between two readings.
pub fn between(before: &Reading, now: &Reading) -> View {
    let HostInfo { ref version, generation, uptime_ns, memory_total_bytes, memory_free_bytes, .. } = now.info;
    let over_ns = uptime_ns.saturating_sub(before.info.uptime_ns);
    let guest = |guest: &VmInfo| guest_row(before, now, guest, over_ns as f64 / 1e9);
    View {
        host: HostRow {
            version: version.clone(),
            generation,
            uptime_s: uptime_ns as f64 / 1e9,
            memory_total_bytes,
            memory_free_bytes,
        },
        cpus: now.cpus.iter().map(|cpu| cpu_row(before, now, cpu)).collect(),
        guests: now.guests.iter().map(guest).collect(),
    }
}

impl View {
    /// Orders the guests; those that are equal by name.
    pub fn sort(&mut self, by: Sort) {
        let number = |row: &GuestRow| match by {
            Sort::Cpu => row.cpu.unwrap_or_default(),
            Sort::Wait => row.wait.unwrap_or_default(),
            Sort::Exits => row.exits_per_s.unwrap_or_default(),
            Sort::Memory => row.memory_bytes as f64,
            Sort::Name => 0.0,
        };
        self.guests.sort_by(|a, b| number(b).total_cmp(&number(a)).then_with(|| a.name.cmp(&b.name)));
    }
}

fn cpu_row(before: &Reading, now: &Reading, cpu: &wire::CpuInfo) -> CpuRow {
    let figures = before.cpu_figures.get(&cpu.index).zip(now.cpu_figures.get(&cpu.index));
    let shares = figures.and_then(|(before, now)| cpu_shares(before, now));
    CpuRow {
        cpu: cpu.index,
        state: cpu.state,
        guest: shares.map(|[guest, ..]| guest),
        host: shares.map(|[_, host, _]| host),
        idle: shares.map(|[.., idle]| idle),
        vcpus: cpu.vcpus.iter().map(|vcpu| format!("{}/{}", vcpu.vm, vcpu.vcpu)).collect(),
    }
}

/// Parts of a CPU's time: guests', the host's, idle. Together they are 1, but for the counters' own error.
fn cpu_shares(before: &CpuPerf, now: &CpuPerf) -> Option<[f64; 3]> {
    let ticks = Ticks::between(before, now)?;
    Some([ticks.guests, ticks.host, ticks.idle].map(|part| part as f64 / ticks.all as f64))
}

fn guest_row(before: &Reading, now: &Reading, guest: &VmInfo, seconds: f64) -> GuestRow {
    let had = before.guests.iter().find(|had| had.name == guest.name).filter(|_| seconds > 0.0);
    let rate = |had: u64, now: u64| now.checked_sub(had).map(|count| count as f64 / seconds);
    let shares: Vec<(u32, [f64; 2])> = (0..guest.vcpus)
        .filter_map(|vcpu| {
            let key = (guest.name.clone(), vcpu);
            Some((vcpu, vcpu_shares(before.vcpu_figures.get(&key)?, now.vcpu_figures.get(&key)?)?))
        })
        .collect();
    let sum = |part: usize| (!shares.is_empty()).then(|| shares.iter().map(|(_, shares)| shares[part]).sum());
    let waiting = shares.iter().filter(|(_, [_, wait])| *wait >= WAITS);
    GuestRow {
        name: guest.name.clone(),
        state: guest.state,
        vcpus: guest.vcpus,
        memory_bytes: guest.memory_bytes,
        cpu: sum(0),
        wait: sum(1),
        waiting: waiting.map(|&(vcpu, [_, share])| Waiting { vcpu, share }).collect(),
        exits_per_s: had.and_then(|had| rate(had.exits_total, guest.exits_total)),
        exits: had.map_or_else(Vec::new, |had| exit_rates(&had.exits, &guest.exits, rate)),
    }
}

/// Returns a vCPU's parts of the time between two samples: running, waiting.
fn vcpu_shares(before: &VcpuPerf, now: &VcpuPerf) -> Option<[f64; 2]> {
    let time_ns = now.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0)?;
    let part = |had: u64, now: u64| now.checked_sub(had).map(|ns| ns as f64 / time_ns as f64);
    Some([part(before.ran_ns, now.ran_ns)?, part(before.waited_ns, now.waited_ns)?])
}

/// Kinds with exits, most first.
fn exit_rates(before: &[ExitCount], now: &[ExitCount], rate: impl Fn(u64, u64) -> Option<f64>) -> Vec<ExitRate> {
    let count = |kind| before.iter().find(|had| had.kind == kind).map_or(0, |had| had.count);
    let rates = now.iter().filter_map(|exit| {
        let per_s = rate(count(exit.kind), exit.count).filter(|per_s| *per_s > 0.0)?;
        Some(ExitRate { kind: exit.kind, per_s })
    });
    let mut rates: Vec<_> = rates.collect();
    rates.sort_by(|a, b| match b.per_s.total_cmp(&a.per_s) {
        Ordering::Equal => a.kind.cmp(&b.kind),
        order => order,
    });
    rates
}
