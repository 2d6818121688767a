// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit statistics: a vCPU's exits, counted by reason. Written by the CPU that runs it, read by any.

use core::sync::atomic::{AtomicU64, Ordering};

use handover::state::COUNTERS;
use zerocopy::little_endian::U64;

/// Reasons that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExitKind {
    Cpuid,
    MsrRead,
    MsrWrite,
    Port,
    Memory,
    Halt,
    InterruptWindow,
    HostInterrupt,
    Hypercall,
    Other,
}

impl ExitKind {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 10] = [
        Self::Cpuid,
        Self::MsrRead,
        Self::MsrWrite,
        Self::Port,
        Self::Memory,
        Self::Halt,
        Self::InterruptWindow,
        Self::HostInterrupt,
        Self::Hypercall,
        Self::Other,
    ];
}

// The hand-over has room for them.
const _: () = assert!(ExitKind::ALL.len() <= COUNTERS);

/// One number per [`ExitKind`].
#[derive(Debug)]
pub struct ExitStatistics([AtomicU64; ExitKind::ALL.len()]);

impl ExitStatistics {
    /// All zero.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ExitKind::ALL.len()])
    }

    /// Counts one more. Only the CPU that runs the vCPU calls this, so no locked instruction is needed.
    #[inline]
    pub fn count(&self, kind: ExitKind) {
        let counter = &self.0[kind as usize];
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Returns the count of this kind.
    pub fn get(&self, kind: ExitKind) -> u64 {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// Fills the hand-over's counters, in the order of [`ExitKind::ALL`].
    pub(super) fn save(&self, into: &mut [U64; COUNTERS]) {
        into.iter_mut().zip(&self.0).for_each(|(into, counter)| *into = counter.load(Ordering::Relaxed).into());
    }

    /// Counts on from another image.
    pub(super) fn restore(&self, from: &[U64; COUNTERS]) {
        self.0.iter().zip(from).for_each(|(counter, from)| counter.store(from.get(), Ordering::Relaxed));
    }

    /// Returns the count of all kinds.
    pub fn total(&self) -> u64 {
        ExitKind::ALL.iter().map(|&kind| self.get(kind)).sum()
    }
}

impl Default for ExitStatistics {
    fn default() -> Self {
        Self::new()
    }
}
