// SPDX-License-Identifier: MIT OR Apache-2.0
//! `net`: a network between two guests of one CPU, which has nothing else to do.
//!
//! A sender sends as much as it can to a guest that drops what comes: datagrams in frames of 64 bytes, then one TCP
//! connection. Instructions are counted (`-icount shift=0`): the CPU's time stamp counter, without what it has spent in
//! guests and in waiting, is the host's part, all of it: exits, forwarding, scheduling, and the counting itself. The
//! frames are those that the switch has counted meanwhile.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::client::Client;
use baton::config::Guest;
use baton::drivers::Drivers;
use baton::size::Size;
use bundle::{NetworkConfig, NicConfig};
use lab::What;
use wire::CpuPerf;

use super::report::{Figure, Goal, Report};
use super::setup::{COUNT_INSTRUCTIONS, HostSetup, Started, guest, temporary_folder};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "net",
    about: "a network between two guests: the host's instructions for a frame, and exits",
    goals: &[
        Goal::at_most("net_exits_per_64k_frame", 1.0, "exits"),
        Goal::at_most("net_instructions_per_packet_64B", 3000.0, INSTRUCTIONS),
        Goal::at_most("net_host_instructions_vs_vhost", 0.5, "ratio"),
        Goal::at_least("net_throughput_vs_kvm", 1.2, "ratio"),
        Goal::at_most("net_latency_vs_kvm", 0.7, "ratio"),
        Goal::at_most("net_tcp_stall_ms", 20.0, "ms"),
    ],
    run,
};

/// Goals that nothing here measures: a KVM with vhost beside it, and updates meanwhile.
const NOT_MEASURED: [&str; 4] =
    ["net_host_instructions_vs_vhost", "net_throughput_vs_kvm", "net_latency_vs_kvm", "net_tcp_stall_ms"];
const INSTRUCTIONS: &str = "instructions";
const MEMORY: Size = Size::mebibytes(768);
const GUEST_MEMORY: Size = Size::mebibytes(256);
const SINK: &str = "sink";
const SENDER: &str = "sender";
/// The agent's tasks in the sender, and the goal's name of what it sends.
const PACKETS: &str = "packets";
const BULK: &str = "bulk";
/// Bytes that the TCP connection's figures are for: the largest frame.
const LARGEST: f64 = 65536.0;
/// From the first frames to the window, and the window, in the emulator's own time.
const WARM_UP: Duration = Duration::from_secs(3);
const WINDOW: Duration = Duration::from_secs(6);
/// Frames without which a window shows nothing.
const LEAST_FRAMES: u64 = 500;

/// The counts of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counts {
    /// Frames that the sender's device has sent, and their bytes.
    frames: f64,
    bytes: f64,
    /// Those that the receiver's device had no buffer for.
    dropped: f64,
    /// Exits of both guests.
    exits: f64,
    /// The host's instructions.
    host: f64,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let packets = measure_all(context, PACKETS)?;
    let per_frame = |value: fn(&Counts) -> f64| packets.iter().map(|counts| value(counts) / counts.frames).collect();
    let figure = |metric, unit, values: Vec<f64>| Figure::measured("64 bytes", metric, unit, values);
    let host = report.figure(figure("host_instructions_per_frame", INSTRUCTIONS, per_frame(|counts| counts.host)))?;
    report.figure(figure("exits_per_frame", "exits", per_frame(|counts| counts.exits)))?;
    report.figure(figure("dropped_per_frame", "frames", per_frame(|counts| counts.dropped)))?;
    report.goal("net_instructions_per_packet_64B", host)?;
    let bulk = measure_all(context, BULK)?;
    let per_largest = |value: fn(&Counts) -> f64| -> Vec<f64> {
        bulk.iter().map(|counts| value(counts) / (counts.bytes / LARGEST)).collect()
    };
    let figure = |metric, unit, values: Vec<f64>| Figure::measured("TCP, 64 KiB", metric, unit, values);
    report.figure(figure("host_instructions", INSTRUCTIONS, per_largest(|counts| counts.host)))?;
    let sizes = bulk.iter().map(|counts| counts.bytes / counts.frames).collect();
    report.figure(figure("bytes_per_frame", "bytes", sizes))?;
    let exits = report.figure(figure("exits", "exits", per_largest(|counts| counts.exits)))?;
    report.goal("net_exits_per_64k_frame", exits)?;
    NOT_MEASURED.into_iter().try_for_each(|goal| report.leave_out(goal))
}

fn measure_all(context: &Context, traffic: &str) -> Result<Vec<Counts>> {
    let run = |run| {
        context.step(&format!("net: {traffic}, run {run} of {}", context.runs));
        measure(context, traffic)
    };
    (1..=context.runs).map(run).collect()
}

/// Measures one window of traffic on a machine of its own.
fn measure(context: &Context, traffic: &str) -> Result<Counts> {
    let folder = temporary_folder()?;
    let mut host = start(context, folder.path(), traffic)?;
    let mut console = String::new();
    host.wait(context.timeout, "traffic", |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        ["sink: ", "flood: "].iter().all(|line| console.contains(line)).then_some(())
    })?;
    sleep(WARM_UP);
    let mut client = host.lab.client()?;
    let before = Reading::take(&mut client)?;
    sleep(WINDOW);
    let after = Reading::take(&mut client)?;
    ensure!(
        after.frames - before.frames >= LEAST_FRAMES,
        "{} frames were sent in {WINDOW:?}: the guests printed\n{console}",
        after.frames - before.frames
    );
    Ok(after.since(&before))
}

fn start(context: &Context, folder: &Path, traffic: &str) -> Result<Started> {
    let kernel = context.made("target/kernels/default/vmlinuz")?;
    let drivers = folder.join("drivers.cpio");
    let archive = Drivers::of(kernel.parent().unwrap_or(&kernel))?.archive(&["virtio_pci", "virtio_net"])?;
    fs::write(&drivers, archive).context("the drivers cannot be written")?;
    let linux = |name: &str, number: u8, tasks: &str| -> Result<Guest> {
        Ok(Guest {
            initrd: Some(context.made("target/guests/initramfs.cpio")?),
            modules: vec![drivers.clone()],
            cmdline: format!("console=ttyS0 loglevel=5 agent=drivers,{tasks}"),
            nics: vec![nic(number)],
            ..guest(name, kernel.clone(), GUEST_MEMORY)
        })
    };
    let guests = vec![
        linux(SINK, 1, "sink:10.9.0.1:9,wait")?,
        linux(SENDER, 2, &format!("{traffic}:10.9.0.2:10.9.0.1:9,wait"))?,
    ];
    let networks = vec![NetworkConfig { name: "lan".to_owned(), mtu: 1500 }];
    let extra = COUNT_INSTRUCTIONS.map(Into::into).to_vec();
    HostSetup { guests, networks, extra, ..HostSetup::new(MEMORY) }.start(context)
}

fn nic(number: u8) -> NicConfig {
    NicConfig::with_mac([0x52, 0x54, 0, 0, 0, number])
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
        let expected = Counts { frames: 10.0, bytes: 640.0, dropped: 2.0, exits: 5.0, host: 600.0 };
        assert_eq!(after.since(&before), expected);
    }
}
