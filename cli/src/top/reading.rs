// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a host: its description, guests, CPUs and figures.

use std::collections::BTreeMap;

use anyhow::Result;
use wire::{CpuInfo, CpuPerf, CpuState, HostInfo, VcpuPerf, VmInfo, VmState};

use crate::client::Client;

/// The most CPUs and vCPUs of which figures are read.
const MAX_FIGURES: usize = 256;

/// One reading of a host.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The host.
    pub info: HostInfo,
    /// Its guests.
    pub guests: Vec<VmInfo>,
    /// Its CPUs.
    pub cpus: Vec<CpuInfo>,
    /// The last figures of CPUs.
    pub cpu_figures: BTreeMap<u32, CpuPerf>,
    /// The last figures of running guests' vCPUs.
    pub vcpu_figures: BTreeMap<(String, u32), VcpuPerf>,
}

/// Reads a host. Figures are those that the reading before has had sampled.
///
/// # Errors
/// The line is lost, or the host does not answer.
pub fn read(client: &mut Client) -> Result<Reading> {
    let (info, guests, cpus) = (client.info()?, client.vms()?, client.cpus()?);
    let (mut cpu_figures, mut vcpu_figures) = (BTreeMap::new(), BTreeMap::new());
    for cpu in cpus.iter().filter(|cpu| cpu.state == CpuState::Online).take(MAX_FIGURES) {
        cpu_figures.extend(client.last_cpu_figures(cpu.index)?.map(|figures| (cpu.index, figures)));
    }
    let has_time = |guest: &&VmInfo| matches!(guest.state, VmState::Running | VmState::Hung | VmState::Panicked);
    let running = guests.iter().filter(has_time);
    let vcpus = running.flat_map(|guest| (0..guest.vcpus).map(|vcpu| (guest.name.clone(), vcpu)));
    for (guest, vcpu) in vcpus.take(MAX_FIGURES) {
        let figures = client.last_figures(&guest, vcpu)?;
        vcpu_figures.extend(figures.map(|figures| ((guest, vcpu), figures)));
    }
    Ok(Reading { info, guests, cpus, cpu_figures, vcpu_figures })
}
