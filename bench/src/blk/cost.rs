// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of requests: counts of windows of constant use.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::client::Client;
use baton::commands::stat;
use wire::CpuPerf;

use super::machine::{Console, answered, disk, setup};
use crate::Context;
use crate::setup::{COUNT_INSTRUCTIONS, HostSetup, temporary_folder};

/// The guest goes round in so many MiB.
pub(super) const TASKS: &str = "disk:4,wait";
/// The host counts for 5 s after each reading, by its own clock, which passes idle time at once: windows are short, and
/// those after which it had stopped are left out.
const WINDOW: Duration = Duration::from_millis(500);
const MOST_WINDOWS: usize = 40;
/// Requests without which windows show nothing.
const LEAST_REQUESTS: f64 = 1000.0;

/// The counts of the windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Requests of the disk that were answered.
    pub requests: f64,
    /// Exits of both guests.
    pub exits: f64,
    /// The host's instructions, and all, the guests' included.
    pub host: f64,
    pub all: f64,
}

/// Measures on a machine of its own.
pub(super) fn measure(context: &Context) -> Result<Counts> {
    let folder = temporary_folder()?;
    let extra = COUNT_INSTRUCTIONS.map(Into::into).to_vec();
    let setup = HostSetup { extra, ..setup(context, folder.path(), TASKS, false)? };
    let (mut host, mut console) = (setup.start(context)?, Console::default());
    // The first is of a time in which the guest, too, was busy with its own start.
    for _ in 0..2 {
        console.next_report(&mut host, context.timeout)?;
    }
    let mut client = host.lab.client()?;
    let mut counts = Counts::default();
    for _ in 0..MOST_WINDOWS {
        let before = Reading::take(&mut client)?;
        sleep(WINDOW);
        counts.add(&before, &Reading::take(&mut client)?);
        if counts.requests >= LEAST_REQUESTS {
            return Ok(counts);
        }
    }
    bail!("{} requests were answered in {MOST_WINDOWS} times {WINDOW:?}", counts.requests)
}

impl Counts {
    /// Adds a window, if the host counted in all of it.
    fn add(&mut self, before: &Reading, after: &Reading) {
        let Ok(span) = stat::between(0, &[], &before.cpu, &after.cpu) else { return };
        let all = span.ticks.saturating_sub(span.idle_ticks);
        self.requests += (after.requests - before.requests) as f64;
        self.exits += (after.exits - before.exits) as f64;
        self.host += all.saturating_sub(span.guest_ticks) as f64;
        self.all += all as f64;
    }
}

/// Sums until a moment.
struct Reading {
    cpu: CpuPerf,
    requests: u64,
    exits: u64,
}

impl Reading {
    fn take(client: &mut Client) -> Result<Self> {
        Ok(Self {
            cpu: client.cpu_figures(0)?,
            requests: answered(&disk(client)?),
            exits: client.vms()?.iter().map(|vm| vm.exits_total).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_part_is_what_neither_guests_nor_waiting_took() {
        let cpu = |began_ns, ticks, idle_ticks, gone_ticks| CpuPerf {
            at_ns: ticks,
            began_ns,
            ticks,
            host_cycles: 0,
            host_reference_cycles: 0,
            idle_ticks,
            gone_ticks,
            guests: Vec::new(),
        };
        let before = Reading { cpu: cpu(7, 1000, 500, 400), requests: 1, exits: 2 };
        let after = Reading { cpu: cpu(7, 3000, 1200, 1100), requests: 11, exits: 42 };
        let mut counts = Counts::default();
        counts.add(&before, &after);
        let expected = Counts { requests: 10.0, exits: 40.0, host: 600.0, all: 1300.0 };
        assert_eq!(counts, expected);
        counts.add(&before, &Reading { cpu: cpu(8, 3000, 1200, 1100), ..after });
        assert_eq!(counts, expected, "the host had stopped counting");
    }
}
