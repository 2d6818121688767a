// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reading of a host: one request for each list of things, one for each vCPU that runs, and one for each CPU.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use baton::client::Client;
use wire::{CpuPerf, DiskInfo, EventKind, Refusal, VcpuPerf, Vulnerability};

use super::{Owner, SHARE};
use crate::clock;
use crate::history::Kind;
use crate::host::snapshot::{online, vcpus};
use crate::host::{CpuTime, Link, PciUse, Snapshot};

/// The interval between requests for counters of CPUs: the host stops them five seconds after the last one.
const COUNT_EVERY: Duration = Duration::from_secs(2);
/// The interval between requests for PCI functions: their use changes with events only, and each has a long answer.
const PCI_EVERY: Duration = Duration::from_secs(60);

impl Owner {
    /// Reads the values that change, and notifies clients.
    pub(super) fn read(&mut self, client: &mut Client) -> Result<()> {
        let started = Instant::now();
        let before = self.shared.snapshot();
        let info = client.info()?;
        let is_connected = before.link == Link::Connected;
        let is_same = self.note_place(&info, is_connected)?;
        if is_connected && (!is_same || self.consoles != self.shared.consoles.choice()) {
            self.subscribe(client)?;
        }
        let mut snapshot = lists(client, if is_same { &before.vulnerabilities } else { &[] })?;
        snapshot.since_ms = if is_connected { before.since_ms } else { clock::now_ms() };
        (snapshot.losses, snapshot.info) = (before.losses, Some(info));
        snapshot.vcpus = vcpu_figures(client, &snapshot)?;
        snapshot.cpu_times = self.read_cpu_times(client, &snapshot)?;
        snapshot.pci = match is_connected && is_same && started < self.pci_due {
            true => before.pci.clone(),
            false => self.read_pci(client)?,
        };
        self.keep_snapshot(snapshot);
        self.earliest = Instant::now() + started.elapsed() * SHARE;
        self.due = self.earliest.max(started + self.refresh);
        Ok(())
    }

    fn keep_snapshot(&mut self, mut snapshot: Snapshot) {
        snapshot.read_ms = clock::now_ms();
        if let Some(sample) = self.sampler.sample(Instant::now(), &snapshot) {
            self.shared.keep(Kind::Sample, (snapshot.read_ms, 0), &sample);
        }
        self.shared.set_snapshot(snapshot);
    }

    /// Reads the counters of all CPUs that are online.
    fn read_cpu_times(&mut self, client: &mut Client, snapshot: &Snapshot) -> Result<BTreeMap<u32, CpuTime>> {
        let mut figures = BTreeMap::<u32, CpuPerf>::new();
        for cpu in online(&snapshot.cpus) {
            figures.extend(client.last_cpu_figures(cpu)?.map(|latest| (cpu, latest)));
        }
        self.count_due = Instant::now() + COUNT_EVERY;
        let tsc_hz = snapshot.info.as_ref().map_or(0, |info| info.tsc_hz);
        self.cpu_times.note(figures, tsc_hz);
        self.cpu_times.retain(|index| snapshot.cpus.iter().any(|cpu| cpu.index == index));
        Ok(self.cpu_times.sums().clone())
    }

    /// Has the counters of all CPUs go on: a request for those of one CPU is enough.
    pub(super) fn keep_counting(&mut self, client: &mut Client) -> Result<()> {
        self.count_due = Instant::now() + COUNT_EVERY;
        let snapshot = self.shared.snapshot();
        let first = online(&snapshot.cpus).next();
        first.map_or(Ok(()), |cpu| client.last_cpu_figures(cpu).map(drop))
    }

    fn read_pci(&mut self, client: &mut Client) -> Result<PciUse> {
        self.pci_due = Instant::now() + PCI_EVERY;
        match client.pci() {
            Ok((_, functions)) => Ok(PciUse::of(&functions)),
            Err(error) if error.is::<Refusal>() => Ok(PciUse::default()),
            Err(error) => Err(error),
        }
    }

    /// Has PCI functions read again after an event that may have changed their use.
    pub(super) fn note_pci_event(&mut self, event: &EventKind) {
        let is_one = matches!(
            event,
            EventKind::FunctionAssigned { .. }
                | EventKind::FunctionReleased { .. }
                | EventKind::FunctionStopped { .. }
                | EventKind::VmStarted { .. }
                | EventKind::VmStopped { .. }
                | EventKind::VmFailed { .. }
                | EventKind::VmCreated { .. }
                | EventKind::VmDeleted { .. }
                | EventKind::VmChanged { .. }
        );
        if is_one {
            self.pci_due = Instant::now();
        }
    }
}

/// Reads the lists of things. Vulnerabilities that are known are not asked for.
fn lists(client: &mut Client, known: &[Vulnerability]) -> Result<Snapshot> {
    Ok(Snapshot {
        link: Link::Connected,
        guests: client.vms()?,
        cpus: client.cpus()?,
        ports: client.net_ports()?,
        disks: disks(client)?,
        iommus: client.iommus()?,
        vulnerabilities: if known.is_empty() { client.vulnerabilities()? } else { known.to_vec() },
        ..Snapshot::default()
    })
}

/// Reads the disks; a host of an earlier release lists none.
fn disks(client: &mut Client) -> Result<Vec<DiskInfo>> {
    client.disks().or_else(|error| if error.is::<Refusal>() { Ok(Vec::new()) } else { Err(error) })
}

/// Returns the figures of vCPUs that the request before has had sampled. A guest may have ended meanwhile.
fn vcpu_figures(client: &mut Client, snapshot: &Snapshot) -> Result<BTreeMap<(String, u32), VcpuPerf>> {
    let mut figures = BTreeMap::new();
    for (guest, vcpu) in vcpus(&snapshot.guests) {
        let latest = client.last_figures(&guest, vcpu)?;
        figures.extend(latest.map(|latest| ((guest, vcpu), latest)));
    }
    Ok(figures)
}
