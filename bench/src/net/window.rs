// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows of traffic between two guests of one CPU, by the host's own counts: in instructions, or in time.

use std::ffi::OsString;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::client::Client;
use baton::config::Guest;
use baton::size::Size;
use bundle::NetworkConfig;
use lab::{Accelerator, What};
use wire::CpuPerf;

use super::traffic::{ECHOES, Traffic, round_trip};
use super::{DRIVERS, nic};
use crate::Context;
use crate::setup::{COUNT_INSTRUCTIONS, HostSetup, Started, linux, temporary_folder};

const MEMORY: Size = Size::mebibytes(768);
const SINK: &str = "sink";
const SENDER: &str = "sender";
/// Ticks from the first frames to the window, and of the window: instructions where these are counted, else
/// nanoseconds.
const WARM_UP: [u64; 2] = [500_000_000, 3_000_000_000];
const WINDOW: [u64; 2] = [1_000_000_000, 10_000_000_000];
/// Between two readings, each of which costs the host some instructions. It counts for 5 s of its clock after each.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Frames without which a window shows nothing.
const LEAST_FRAMES: u64 = 500;

/// The unit of a machine's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) enum Ticks {
    /// Instructions (`-icount shift=0`).
    Instructions,
    /// Nanoseconds.
    Time,
}

impl Ticks {
    /// The emulator's further arguments.
    pub fn arguments(self) -> Vec<OsString> {
        match self {
            Self::Instructions => COUNT_INSTRUCTIONS.map(Into::into).to_vec(),
            Self::Time => Vec::new(),
        }
    }
}

/// The counts of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::net) struct Counts {
    /// Frames that the sender's device has sent, and their bytes.
    pub frames: f64,
    pub bytes: f64,
    /// Those that the receiver's device had no buffer for.
    pub dropped: f64,
    /// Exits of both guests.
    pub exits: f64,
    /// Ticks of the machine, and those of them that are the host's.
    pub ticks: f64,
    pub host: f64,
}

/// Measures one window of traffic on a machine of its own.
pub(in crate::net) fn measure(context: &Context, traffic: Traffic, ticks: Ticks) -> Result<Counts> {
    let folder = temporary_folder()?;
    let mut host = start(context, folder.path(), traffic, ticks)?;
    let mut consoles = [SINK, SENDER].map(|_| String::new());
    host.wait(context.timeout, "traffic", |what| {
        if let What::Console { name, bytes } = what {
            consoles[usize::from(name == SENDER)] += &String::from_utf8_lossy(bytes);
        }
        traffic.signs().iter().zip(&consoles).all(|(sign, console)| console.contains(sign)).then_some(())
    })?;
    let mut client = host.lab.client()?;
    let first = Reading::take(&mut client)?;
    let mut behind = |before: Reading, wanted: u64| -> Result<Reading> {
        while host.lab.elapsed() < context.timeout {
            sleep(POLL_INTERVAL);
            let now = Reading::take(&mut client)?;
            if now.ticks - before.ticks >= wanted {
                return Ok(now);
            }
        }
        bail!("{wanted} ticks take longer than {:?}; raise --timeout", context.timeout)
    };
    let before = behind(first, WARM_UP[ticks as usize])?;
    let after = behind(before, WINDOW[ticks as usize])?;
    let frames = after.frames - before.frames;
    ensure!(frames >= LEAST_FRAMES, "{frames} frames were sent in a window: the guests printed\n{}", consoles.concat());
    Ok(after.since(&before))
}

/// Measures the mean round trip of blocks, in microseconds of the guest's clock.
pub(in crate::net) fn round_trip_us(context: &Context) -> Result<f64> {
    let folder = temporary_folder()?;
    let mut host = start(context, folder.path(), Traffic::Echo, Ticks::Time)?;
    let mut console = String::new();
    let all = host.wait(context.timeout, "its round trips", |what| {
        if let What::Console { name, bytes } = what
            && name == SENDER
        {
            console += &String::from_utf8_lossy(bytes);
        }
        let (whole, _) = console.rsplit_once('\n')?;
        let all: Vec<f64> = whole.lines().filter_map(round_trip).collect();
        (all.len() == ECHOES.0 + ECHOES.1).then_some(all)
    })?;
    Ok(all[ECHOES.0..].iter().sum::<f64>() / ECHOES.1 as f64)
}

fn start(context: &Context, folder: &Path, traffic: Traffic, ticks: Ticks) -> Result<Started> {
    let linux = |name: &str, number: u8, tasks: &str| -> Result<Guest> {
        Ok(Guest { nics: vec![nic(number)], ..linux(context, folder, name, DRIVERS, tasks)? })
    };
    let [sink, sender] = traffic.tasks();
    let guests = vec![linux(SINK, 1, &sink)?, linux(SENDER, 2, &sender)?];
    let networks = vec![NetworkConfig { name: "lan".to_owned(), mtu: 1500 }];
    // In one thread, as the machine with KVM that it is compared with.
    let accelerator = Accelerator::TcgSingle;
    HostSetup { guests, networks, accelerator, extra: ticks.arguments(), ..HostSetup::new(MEMORY) }.start(context)
}

/// The host's counts until a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    frames: u64,
    bytes: u64,
    dropped: u64,
    exits: u64,
    /// Ticks of the CPU, and those of them that were not the host's.
    ticks: u64,
    others: u64,
}

impl Reading {
    fn take(client: &mut Client) -> Result<Self> {
        let CpuPerf { ticks, idle_ticks, gone_ticks, guests, .. } = client.cpu_figures(0)?;
        let in_guests: u64 = guests.iter().map(|guest| guest.ticks).sum();
        let ports = client.net_ports()?;
        let port = |name: &str| ports.iter().find(|port| port.guest == name).context("a port is missing");
        let (sender, sink) = (port(SENDER)?, port(SINK)?);
        Ok(Self {
            frames: sender.sent.frames,
            bytes: sender.sent.bytes,
            dropped: sink.drops.full,
            exits: client.vms()?.iter().map(|vm| vm.exits_total).sum(),
            ticks,
            others: idle_ticks + gone_ticks + in_guests,
        })
    }

    fn since(&self, before: &Self) -> Counts {
        let all = self.ticks - before.ticks;
        Counts {
            frames: (self.frames - before.frames) as f64,
            bytes: (self.bytes - before.bytes) as f64,
            dropped: (self.dropped - before.dropped) as f64,
            exits: (self.exits - before.exits) as f64,
            ticks: all as f64,
            host: all.saturating_sub(self.others - before.others) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_part_is_what_neither_guests_nor_waiting_took() {
        let before = Reading { ticks: 1000, others: 900, frames: 1, ..Reading::default() };
        let after = Reading { ticks: 3000, others: 2300, frames: 11, bytes: 640, exits: 5, dropped: 2 };
        let expected = Counts { frames: 10.0, bytes: 640.0, dropped: 2.0, exits: 5.0, ticks: 2000.0, host: 600.0 };
        assert_eq!(after.since(&before), expected);
    }
}
