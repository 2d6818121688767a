// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last report of a host.

mod pci;

use std::collections::BTreeMap;
use std::fmt;

use baton::connection::Address;
use serde::Serialize;
use utoipa::ToSchema;
use wire::{CpuInfo, CpuState, DiskInfo, HostInfo, IommuUnit, NetPort, VcpuPerf, VmInfo, VmState, Vulnerability};

pub use self::pci::PciUse;
use super::CpuTime;
use crate::clock;

/// The most vCPUs, and the most CPUs, of which figures are read.
const MAX_FIGURES: usize = 256;

/// The line to a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// It is being opened for the first time.
    #[default]
    Connecting,
    /// The host answers.
    Connected,
    /// There is none; the reason. It is opened again and again.
    Unreachable(String),
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("the line is being opened"),
            Self::Connected => f.write_str("connected"),
            Self::Unreachable(reason) => f.write_str(reason),
        }
    }
}

/// The last report of a host. Without a line it is empty.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The line to it.
    pub link: Link,
    /// The time from which on it is in that state, in milliseconds since 1970.
    pub since_ms: u64,
    /// The time at which the host was read, likewise; 0 if it was not.
    pub read_ms: u64,
    /// The number of times that the line was lost.
    pub losses: u64,
    /// The host.
    pub info: Option<HostInfo>,
    /// Its guests.
    pub guests: Vec<VmInfo>,
    /// Its CPUs.
    pub cpus: Vec<CpuInfo>,
    /// Ports of its networks.
    pub ports: Vec<NetPort>,
    /// Disks of its guests behind other guests' servers.
    pub disks: Vec<DiskInfo>,
    /// Its IOMMUs.
    pub iommus: Vec<IommuUnit>,
    /// Its speculation vulnerabilities.
    pub vulnerabilities: Vec<Vulnerability>,
    /// The last figures of running guests' vCPUs.
    pub vcpus: BTreeMap<(String, u32), VcpuPerf>,
    /// Time of its CPUs, by their numbers.
    pub cpu_times: BTreeMap<u32, CpuTime>,
    /// The use of its PCI functions.
    pub pci: PciUse,
}

impl Snapshot {
    /// Returns a snapshot without a report.
    pub fn without_report(link: Link, losses: u64) -> Self {
        Self { link, losses, since_ms: clock::now_ms(), ..Self::default() }
    }

    /// Returns the host's entry in a listing.
    pub fn status(&self, name: &str, address: &Address) -> Status {
        let info = self.info.as_ref();
        let runs = |vm: &&VmInfo| matches!(vm.state, VmState::Running | VmState::Hung | VmState::Panicked);
        Status {
            name: name.to_owned(),
            address: address.to_string(),
            state: match self.link {
                Link::Connecting => State::Connecting,
                Link::Connected => State::Connected,
                Link::Unreachable(_) => State::Unreachable,
            },
            reason: if let Link::Unreachable(reason) = &self.link { Some(reason.clone()) } else { None },
            since_ms: self.since_ms,
            read_ms: (self.read_ms > 0).then_some(self.read_ms),
            version: info.map(|info| info.version.clone()),
            build: info.map(|info| info.build.clone()),
            generation: info.map(|info| info.generation),
            uptime_ns: info.map(|info| info.uptime_ns),
            cpus: info.map(|info| info.cpus),
            memory_total_bytes: info.map(|info| info.memory_total_bytes),
            memory_free_bytes: info.map(|info| info.memory_free_bytes),
            guests: self.guests.len(),
            guests_running: self.guests.iter().filter(runs).count(),
        }
    }
}

/// State of the line to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The line is being opened for the first time.
    Connecting,
    /// The host answers.
    Connected,
    /// There is no line, or the host does not answer.
    Unreachable,
}

/// A host in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// The address of its line.
    pub address: String,
    /// State of the line.
    pub state: State,
    /// The reason for which it is unreachable.
    pub reason: Option<String>,
    /// The time from which on the line is in this state: milliseconds since 1970.
    pub since_ms: u64,
    /// The time at which the host was read last: milliseconds since 1970.
    pub read_ms: Option<u64>,
    /// Baton's version.
    pub version: Option<String>,
    /// Its build.
    pub build: Option<String>,
    /// Images that have run since the machine was powered on.
    pub generation: Option<u64>,
    /// Nanoseconds since the host was entered.
    pub uptime_ns: Option<u64>,
    /// CPUs in use.
    pub cpus: Option<u32>,
    /// All its memory.
    pub memory_total_bytes: Option<u64>,
    /// Memory that is free.
    pub memory_free_bytes: Option<u64>,
    /// Its guests.
    pub guests: usize,
    /// The guests that run.
    pub guests_running: usize,
}

/// Returns the vCPUs of guests that run.
pub(super) fn vcpus(guests: &[VmInfo]) -> Vec<(String, u32)> {
    let running = guests.iter().filter(|vm| matches!(vm.state, VmState::Running | VmState::Hung | VmState::Panicked));
    running.flat_map(|vm| (0..vm.vcpus).map(|vcpu| (vm.name.clone(), vcpu))).take(MAX_FIGURES).collect()
}

/// Returns the CPUs that are online.
pub(super) fn online(cpus: &[CpuInfo]) -> impl Iterator<Item = u32> {
    cpus.iter().filter(|cpu| cpu.state == CpuState::Online).map(|cpu| cpu.index).take(MAX_FIGURES)
}
