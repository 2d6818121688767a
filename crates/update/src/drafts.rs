// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drafts of guests' state: each CPU rehearses once ([`Outbound::rehearse`](crate::outbound::Outbound::rehearse)), and
//! the leader waits for all of them.

use alloc::vec::Vec;

use crate::platform::{Cpu, Platform};

/// Interval in µs at which CPUs that have not saved are interrupted again.
const REMINDER_US: u64 = 1_000;

/// The outcome of each CPU's draft, with problems `E`.
#[derive(Debug)]
pub struct Drafts<E> {
    all: Vec<(Cpu, Option<Result<(), E>>)>,
    remind_at: u64,
}

impl<E> Drafts<E> {
    /// Creates the state for these CPUs, which are to save. The caller notifies them, then calls [`Self::begin`].
    #[must_use]
    pub fn new(cpus: impl Iterator<Item = Cpu>) -> Self {
        Self { all: cpus.map(|cpu| (cpu, None)).collect(), remind_at: 0 }
    }

    /// Interrupts all CPUs.
    pub fn begin(&mut self, platform: &impl Platform) {
        self.interrupt_missing(platform);
    }

    /// Notes that the CPU `index` has saved, or could not. The first outcome counts.
    pub fn note(&mut self, index: u32, outcome: Result<(), E>) {
        if let Some((_, noted)) = self.all.iter_mut().find(|(cpu, _)| cpu.index == index) {
            noted.get_or_insert(outcome);
        }
    }

    /// Returns `None` while not all have saved; then the first problem, if there is one.
    pub fn poll(&mut self, platform: &impl Platform) -> Option<Result<(), &E>> {
        if self.all.iter().any(|(_, outcome)| outcome.is_none()) {
            if platform.now() >= self.remind_at {
                self.interrupt_missing(platform);
            }
            return None;
        }
        let problem = self.all.iter().find_map(|(_, outcome)| outcome.as_ref()?.as_ref().err());
        Some(problem.map_or(Ok(()), Err))
    }

    fn interrupt_missing(&mut self, platform: &impl Platform) {
        self.remind_at = platform.now() + platform.ticks(REMINDER_US);
        self.all.iter().filter(|(_, outcome)| outcome.is_none()).for_each(|(cpu, _)| platform.interrupt(*cpu));
    }
}
