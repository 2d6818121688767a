// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of virtual processors, for the control channel.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use vm::machine::{Counters, ExitKind as Counted};
use wire::{ExitCount, ExitKind, VcpuPerf};

use super::Guest;
use crate::arch::percpu;

impl Guest {
    /// The latest figures of a virtual processor. New ones are being taken from now on.
    pub fn look_at_figures(&self, vcpu: usize) -> Option<VcpuPerf> {
        let latest = self.figures.get(vcpu)?.look();
        percpu::wake(self.processor_to_tell(vcpu));
        latest
    }
}

/// The exits of some virtual processors together, by kind; kinds that never came are left out.
pub fn exits_of(counters: &[Arc<Counters>], vcpus: Range<usize>) -> Vec<ExitCount> {
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
