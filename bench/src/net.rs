// SPDX-License-Identifier: MIT OR Apache-2.0
//! `net`: a network between two guests of one CPU, which has nothing else to do.
//!
//! A sender sends as much as it can to a guest that drops what comes: datagrams in frames of 64 bytes, then one TCP
//! connection. Instructions are counted (`-icount shift=0`): the CPU's time stamp counter, without what it has spent in
//! guests and in waiting, is the host's part, all of it: exits, forwarding, scheduling, and the counting itself. The
//! frames are those that the switch has counted meanwhile.
//!
//! The same TCP connection, and round trips, between two guests of a stock Linux with KVM and vhost on the same machine
//! are the comparison. On another machine connections between guests go on while the host is updated.

mod peer;
mod stall;
mod traffic;
mod window;

use anyhow::Result;
use bundle::NicConfig;

use self::traffic::Traffic;
use self::window::{Counts, Ticks};
use super::report::{Figure, Goal, Report};
use super::{Bench, Context, kvm};

pub(super) static BENCH: Bench = Bench {
    name: "net",
    about: "a network between two guests: the host's instructions for a frame, and exits",
    goals: &[
        Goal::at_most("net_exits_per_64k_frame", 1.0, "exits"),
        Goal::at_most("net_instructions_per_packet_64B", 3000.0, INSTRUCTIONS),
        Goal::at_most("net_host_time_vs_vhost", 0.5, "ratio"),
        Goal::at_least("net_throughput_vs_kvm", 1.2, "ratio"),
        Goal::at_most("net_latency_vs_kvm", 0.7, "ratio"),
        Goal::at_most("net_tcp_stall_ms", 20.0, "ms"),
        Goal::at_most("net_vsock_stall_ms", 20.0, "ms"),
    ],
    run,
};

/// Goals of the comparison with KVM.
const PEER_GOALS: [&str; 3] = ["net_host_time_vs_vhost", "net_throughput_vs_kvm", "net_latency_vs_kvm"];
/// Goals of the connections that go on, in the order of [`stall::WAYS`].
const STALL_GOALS: [&str; 2] = ["net_tcp_stall_ms", "net_vsock_stall_ms"];
const UPDATES: u64 = 50;
/// With `--quick`.
const QUICK_UPDATES: u64 = 5;
const INSTRUCTIONS: &str = "instructions";
/// The drivers of a guest with a card.
pub(super) const DRIVERS: &[&str] = &["virtio_pci", "virtio_net"];
/// Bytes that the TCP connection's figures are for: the largest frame.
const LARGEST: f64 = 65536.0;

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let packets = measure_all(context, Traffic::Packets)?;
    let per_frame = |value: fn(&Counts) -> f64| packets.iter().map(|counts| value(counts) / counts.frames).collect();
    let figure = |metric, unit, values: Vec<f64>| Figure::measured("64 bytes", metric, unit, values);
    let host = report.figure(figure("host_instructions_per_frame", INSTRUCTIONS, per_frame(|counts| counts.host)))?;
    report.figure(figure("exits_per_frame", "exits", per_frame(|counts| counts.exits)))?;
    report.figure(figure("dropped_per_frame", "frames", per_frame(|counts| counts.dropped)))?;
    report.goal("net_instructions_per_packet_64B", host)?;
    let bulk = measure_all(context, Traffic::Bulk)?;
    let per_largest = |value: fn(&Counts) -> f64| -> Vec<f64> {
        bulk.iter().map(|counts| value(counts) / (counts.bytes / LARGEST)).collect()
    };
    let figure = |metric, unit, values: Vec<f64>| Figure::measured("TCP, 64 KiB", metric, unit, values);
    report.figure(figure("host_instructions", INSTRUCTIONS, per_largest(|counts| counts.host)))?;
    let sizes = bulk.iter().map(|counts| counts.bytes / counts.frames).collect();
    report.figure(figure("bytes_per_frame", "bytes", sizes))?;
    let exits = report.figure(figure("exits", "exits", per_largest(|counts| counts.exits)))?;
    report.goal("net_exits_per_64k_frame", exits)?;
    beside_kvm(context, report)?;
    stalls(context, report)
}

/// Time with Baton and with KVM in turn, so that what happens on this machine meanwhile concerns both.
fn beside_kvm(context: &Context, report: &mut Report<'_>) -> Result<()> {
    if let Some(missing) = kvm::missing(context) {
        context.note(&format!("net: nothing to compare with: {missing}"));
        return PEER_GOALS.into_iter().try_for_each(|goal| report.leave_out(goal));
    }
    let mut pairs = Pairs::default();
    for run in 1..=context.runs {
        context.step(&format!("net: beside KVM with vhost, run {run} of {}", context.runs));
        let own = window::measure(context, Traffic::Bulk, Ticks::Time)?;
        let peer = peer::measure(context, Traffic::Bulk)?;
        pairs.host.push([own.host / own.bytes, peer.host / peer.bytes]);
        pairs.rate.push([own.bytes / own.ticks, peer.bytes / peer.ticks]);
        context.step(&format!("net: round trips, run {run} of {}", context.runs));
        pairs.trip.push([window::round_trip_us(context)?, peer::round_trip_us(context)?]);
    }
    pairs.report(report)
}

/// Baton's value and KVM's of each run.
#[derive(Default)]
struct Pairs {
    /// Nanoseconds of the host for a byte.
    host: Vec<[f64; 2]>,
    /// Bytes in a nanosecond.
    rate: Vec<[f64; 2]>,
    /// Microseconds of a round trip.
    trip: Vec<[f64; 2]>,
}

impl Pairs {
    fn report(&self, report: &mut Report<'_>) -> Result<()> {
        let rows = [
            ("TCP, 64 KiB", "host_time", "us", &self.host, LARGEST / 1e3),
            ("TCP", "throughput", "MB/s", &self.rate, 1e3),
            ("TCP, 4 KiB and back", "round_trip", "us", &self.trip, 1.0),
        ];
        for ((variant, metric, unit, pairs, scale), goal) in rows.into_iter().zip(PEER_GOALS) {
            for (side, name) in ["in time", "KVM with vhost"].into_iter().enumerate() {
                let values: Vec<f64> = pairs.iter().map(|pair| pair[side] * scale).collect();
                report.figure(Figure::measured(format!("{variant}, {name}"), metric, unit, values))?;
            }
            let ratios: Vec<f64> = pairs.iter().map(|[own, peer]| own / peer).collect();
            let value = report.figure(Figure::measured(format!("{variant}, beside KVM"), metric, "ratio", ratios))?;
            report.goal(goal, value)?;
        }
        Ok(())
    }
}

/// In time, which the goals are for, and as long as they would be if each instruction took a nanosecond.
fn stalls(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let updates = if context.sizes.quick { QUICK_UPDATES } else { UPDATES };
    for (ticks, name) in [(Ticks::Time, "in time"), (Ticks::Instructions, "1 ns an instruction")] {
        let measured = stall::measure(context, updates, ticks)?;
        for ((way, goal), stalls) in stall::WAYS.into_iter().zip(STALL_GOALS).zip(measured) {
            let figure = |metric, values| Figure::measured(format!("{way}, {name}"), metric, "ms", values);
            report.figure(figure("slowest_round_trip_with_update", stalls.with.clone()))?;
            report.figure(figure("slowest_round_trip_without", stalls.without.clone()))?;
            report.figure(figure("excess_of_the_slowest", vec![stalls.excess()]))?;
            if ticks == Ticks::Time {
                report.goal(goal, stalls.excess())?;
            }
        }
    }
    Ok(())
}

fn measure_all(context: &Context, traffic: Traffic) -> Result<Vec<Counts>> {
    let run = |run| {
        context.step(&format!("net: {}, run {run} of {}", traffic.name(), context.runs));
        window::measure(context, traffic, Ticks::Instructions)
    };
    (1..=context.runs).map(run).collect()
}

/// A guest's card; those of a machine have numbers of their own.
pub(super) fn nic(number: u8) -> NicConfig {
    NicConfig::with_mac([0x52, 0x54, 0, 0, 0, number])
}
