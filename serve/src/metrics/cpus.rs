// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of hosts' CPUs.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use wire::CpuState;

use super::Scraped;
use super::family::{Row, family, labels};
use crate::host::CpuTime;

/// Writes them.
pub(super) fn encode(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    const STATES: [CpuState; 4] = [CpuState::Online, CpuState::Leaving, CpuState::Offline, CpuState::Failed];
    let counts = all.iter().flat_map(|scraped| {
        STATES.map(|state| {
            let count = scraped.snapshot.cpus.iter().filter(|cpu| cpu.state == state).count();
            (labels([("host", &scraped.host.name), ("state", &state.to_string())]), count as f64)
        })
    });
    family("baton_cpus", "CPUs of the host, by state").gauge(encoder, counts)?;
    let busy = family("baton_cpu_busy", "Part of the time since a CPU came online in which it had work").ratios();
    busy.gauge(
        encoder,
        all.iter().flat_map(|scraped| {
            scraped.snapshot.cpus.iter().filter_map(|cpu| {
                let labels = labels([("host", &scraped.host.name), ("cpu", &cpu.index.to_string())]);
                Some((labels, f64::from(cpu.busy_permille?) / 1e3))
            })
        }),
    )?;
    let time =
        family("baton_cpu_time", "Time of the CPU that guests and the host had, and in which it was idle").seconds();
    time.counter(encoder, all.iter().flat_map(|scraped| times(scraped)))
}

/// Returns the time of each CPU since the service read it first. A CPU that is offline keeps its time.
fn times(scraped: &Scraped) -> Vec<Row> {
    let rows = |(cpu, time): (&u32, &CpuTime)| {
        [("guests", time.guests), ("host", time.host), ("idle", time.idle)].map(|(mode, seconds)| {
            (labels([("host", &scraped.host.name), ("cpu", &cpu.to_string()), ("mode", mode)]), seconds)
        })
    };
    scraped.snapshot.cpu_times.iter().flat_map(rows).collect()
}
