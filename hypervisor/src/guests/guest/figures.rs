// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of vCPUs, for the control channel.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use vm::machine::{ExitKind as Counted, ExitStatistics};
use wire::{ExitCount, ExitKind, VcpuPerf};

use super::Guest;
use crate::arch::percpu;

impl Guest {
    /// The latest figures of a vCPU. New ones are being taken from now on.
    pub fn read_figures(&self, vcpu: usize) -> Option<VcpuPerf> {
        let latest = self.figures.get(vcpu)?.request_latest();
        percpu::wake(self.cpu_to_notify(vcpu));
        latest
    }
}

/// The exits of some vCPUs together, by kind; kinds that never came are left out.
pub fn exits_of(counters: &[Arc<ExitStatistics>], vcpus: Range<usize>) -> Vec<ExitCount> {
    let counters = counters.get(vcpus).unwrap_or_default();
    let sum = |kind| counters.iter().map(|counters| counters.get(kind)).sum();
    let counts = Counted::ALL.into_iter().map(|kind| ExitCount { kind: to_wire_kind(kind), count: sum(kind) });
    counts.filter(|exit| exit.count > 0).collect()
}

fn to_wire_kind(kind: Counted) -> ExitKind {
    match kind {
        Counted::Cpuid => ExitKind::Cpuid,
        Counted::MsrRead => ExitKind::MsrRead,
        Counted::MsrWrite => ExitKind::MsrWrite,
        Counted::Port => ExitKind::Port,
        Counted::Memory => ExitKind::MemoryFault,
        Counted::Halt => ExitKind::Halt,
        Counted::InterruptWindow => ExitKind::InterruptWindow,
        Counted::HostInterrupt => ExitKind::HostInterrupt,
        Counted::Hypercall => ExitKind::Hypercall,
        Counted::Other => ExitKind::Unknown,
    }
}
