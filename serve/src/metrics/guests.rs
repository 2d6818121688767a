// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of guests and of the networks between them.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use wire::{NetPort, VcpuPerf, VmInfo, VmState};

use super::Scraped;
use super::family::{Labels, Row, family, labels, word};

/// Writes them.
pub(super) fn encode(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let guests = |rows: fn(&str, &VmInfo) -> Vec<Row>| {
        all.iter()
            .flat_map(move |scraped| scraped.snapshot.guests.iter().flat_map(move |vm| rows(&scraped.host.name, vm)))
    };
    family("baton_guest_state", "1 for the state in which the guest is").gauge(encoder, guests(states))?;
    let memory = family("baton_guest_memory", "Memory that the guest sees").bytes();
    memory.gauge(encoder, guests(|host, vm| vec![(of(host, vm), vm.memory_bytes as f64)]))?;
    let resident = family("baton_guest_memory_resident", "Memory that the guest has now, where it gets it on demand");
    let rows = |host: &str, vm: &VmInfo| vm.resident_bytes.map(|now| (of(host, vm), now as f64)).into_iter().collect();
    resident.bytes().gauge(encoder, guests(rows))?;
    let vcpus = family("baton_guest_vcpus", "vCPUs of the guest");
    vcpus.gauge(encoder, guests(|host, vm| vec![(of(host, vm), f64::from(vm.vcpus))]))?;
    let throttled = family("baton_guest_throttled", "1 if a vCPU of the guest is throttled because it spins");
    throttled.gauge(
        encoder,
        guests(|host, vm| vec![(of(host, vm), f64::from(u8::from(vm.throttled_since_ns.is_some())))]),
    )?;
    family("baton_guest_exits", "Exits since the guest was started, by kind").counter(encoder, guests(exits))?;
    encode_vcpus(all, encoder)?;
    encode_ports(all, encoder)
}

fn of(host: &str, vm: &VmInfo) -> Labels {
    labels([("host", host), ("guest", &vm.name)])
}

fn states(host: &str, vm: &VmInfo) -> Vec<Row> {
    const STATES: [VmState; 7] = [
        VmState::Loading,
        VmState::Running,
        VmState::Paused,
        VmState::Stopped,
        VmState::Failed,
        VmState::Panicked,
        VmState::Hung,
    ];
    let row = |state: VmState| {
        let labels = labels([("host", host), ("guest", &vm.name), ("state", &state.to_string())]);
        (labels, f64::from(u8::from(vm.state == state)))
    };
    STATES.map(row).into()
}

fn exits(host: &str, vm: &VmInfo) -> Vec<Row> {
    let row = |exit: &wire::ExitCount| {
        (labels([("host", host), ("guest", &vm.name), ("kind", &word(&exit.kind))]), exit.count as f64)
    };
    vm.exits.iter().map(row).collect()
}

/// Writes the time of vCPUs: a guest's own kernel counts it as its own or as stolen.
fn encode_vcpus(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let vcpus = |figure: fn(&VcpuPerf) -> u64| {
        all.iter().flat_map(move |scraped| {
            scraped.snapshot.vcpus.iter().map(move |((guest, vcpu), perf)| {
                let labels = labels([("host", &scraped.host.name), ("guest", guest), ("vcpu", &vcpu.to_string())]);
                (labels, figure(perf) as f64 / 1e9)
            })
        })
    };
    let ran = family("baton_vcpu_run", "Time for which the vCPU has had the CPU on which it is").seconds();
    ran.counter(encoder, vcpus(|perf| perf.ran_ns))?;
    let waited = family("baton_vcpu_wait", "Time for which the vCPU has wanted its CPU while others had it").seconds();
    waited.counter(encoder, vcpus(|perf| perf.waited_ns))
}

fn encode_ports(all: &[&Scraped], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let ports = |rows: fn(&str, &NetPort) -> Vec<Row>| {
        all.iter()
            .flat_map(move |scraped| scraped.snapshot.ports.iter().flat_map(move |port| rows(&scraped.host.name, port)))
    };
    let frames = family("baton_network_frames", "Frames at the port of a guest's network device");
    frames.counter(encoder, ports(|host, port| both(host, port, port.sent.frames, port.received.frames)))?;
    let bytes = family("baton_network", "Bytes of frames at the port of a guest's network device").bytes();
    bytes.counter(encoder, ports(|host, port| both(host, port, port.sent.bytes, port.received.bytes)))?;
    let drops = family("baton_network_dropped_frames", "Frames dropped at the port, by reason");
    drops.counter(
        encoder,
        ports(|host, port| {
            port.drops
                .by_reason()
                .map(|(reason, count)| (port_labels(host, port, "reason", reason), count as f64))
                .into()
        }),
    )
}

fn both(host: &str, port: &NetPort, sent: u64, received: u64) -> Vec<Row> {
    let directions = [("sent", sent), ("received", received)];
    directions.map(|(name, count)| (port_labels(host, port, "direction", name), count as f64)).into()
}

fn port_labels(host: &str, port: &NetPort, key: &'static str, value: &str) -> Labels {
    let mac = port.mac.map(|byte| format!("{byte:02x}")).join(":");
    labels([("host", host), ("network", &port.network), ("guest", &port.guest), ("mac", &mac), (key, value)])
}
