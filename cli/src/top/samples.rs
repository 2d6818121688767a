// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readings for tests.

use wire::{CpuInfo, CpuPerf, CpuState, CpuVcpu, ExitCount, ExitKind, GuestTicks, VcpuPerf, VmInfo, VmState};

use super::Reading;
use crate::testing::vm;

/// A guest with so many port exits, and twice as many halts.
pub fn guest(name: &str, memory_bytes: u64, ports: u64) -> VmInfo {
    let exits =
        vec![ExitCount { kind: ExitKind::Port, count: ports }, ExitCount { kind: ExitKind::Halt, count: 2 * ports }];
    VmInfo { memory_bytes, exits_total: 3 * ports, exits, ..vm(name, VmState::Running) }
}

/// Returns a host that has run for so many seconds, in which `web` took a half of CPU 0 and waited for a tenth, and
/// `db` took a quarter; the host itself took a twentieth.
pub fn reading(seconds: u64) -> Reading {
    let (second, info) = (1_000_000_000, crate::testing::host_info());
    let at_ns = seconds * second;
    let figures = |share: u64, waits: u64| VcpuPerf {
        at_ns,
        ran_ns: at_ns / 100 * share,
        waited_ns: at_ns / 100 * waits,
        ..VcpuPerf::default()
    };
    let ticks = |guest: u32, share: u64| GuestTicks { guest, vcpu: 0, ticks: at_ns / 100 * share };
    let on = |vm: &str| CpuVcpu { vm: vm.to_owned(), vcpu: 0 };
    let cpu = |index, state, vcpus| CpuInfo { index, apic_id: index, state, reason: None, busy_permille: None, vcpus };
    let perf = CpuPerf {
        at_ns,
        began_ns: 7,
        ticks: at_ns,
        host_cycles: at_ns / 20,
        host_reference_cycles: at_ns / 20,
        idle_ticks: at_ns / 5,
        gone_ticks: 0,
        guests: vec![ticks(0, 50), ticks(1, 25)],
    };
    Reading {
        info: wire::HostInfo { uptime_ns: at_ns, ..info },
        guests: vec![guest("web", 64 << 20, 10 * seconds), guest("db", 128 << 20, 100 * seconds)],
        cpus: vec![cpu(0, CpuState::Online, vec![on("web"), on("db")]), cpu(1, CpuState::Offline, vec![])],
        cpu_figures: [(0, perf)].into(),
        vcpu_figures: [(("web".to_owned(), 0), figures(50, 10)), (("db".to_owned(), 0), figures(25, 0))].into(),
    }
}
