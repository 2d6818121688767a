// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own counters on one CPU: a user like its guests, with a bank of events like theirs.
//!
//! They count the CPU's time less its guests'. Their clock is therefore the ticks that were no guest's: it stands still
//! while a guest executes, as a guest's stands still meanwhile.

use crate::{Backend as _, Bank, Event, MachineCounters, Policy, Source, What};

const CYCLES: usize = 0;
const REFERENCE_CYCLES: usize = 1;
const IDLE: usize = 2;
/// Slots that count while the host does something, and while it waits.
const BUSY_SLOTS: u16 = 1 << CYCLES | 1 << REFERENCE_CYCLES;
const IDLE_SLOTS: u16 = 1 << IDLE;

/// The counters.
#[derive(Debug)]
pub struct HostCounters(Bank<MachineCounters>);

/// Values of the host's counters. Like a guest's they are 48 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCounts {
    /// Cycles in which the host executed.
    pub cycles: u64,
    /// The same at the rate of the time stamp counter.
    pub reference_cycles: u64,
    /// Ticks in which the CPU waited for an interrupt.
    pub idle: u64,
}

impl HostCounters {
    /// All of them count from now on, at zero ticks; the host does something.
    pub fn begin() -> Self {
        let mut bank = Bank::new(MachineCounters::new(Source::Soft), Policy::Direct);
        bank.switch_in(bank.backend().counters());
        let events = [(CYCLES, What::Cycles), (REFERENCE_CYCLES, What::ReferenceCycles), (IDLE, What::ReferenceCycles)];
        for (slot, what) in events {
            bank.count(slot, Some(&Event::of(what)));
        }
        bank.rest_all(IDLE_SLOTS);
        Self(bank)
    }

    /// From now on, after so many ticks that were no guest's, it waits.
    pub fn wait(&mut self, ticks: u64) {
        self.exchange(ticks, BUSY_SLOTS, IDLE_SLOTS);
    }

    /// It does something again.
    pub fn go_on(&mut self, ticks: u64) {
        self.exchange(ticks, IDLE_SLOTS, BUSY_SLOTS);
    }

    #[inline(never)]
    fn exchange(&mut self, ticks: u64, stopping: u16, starting: u16) {
        self.run_until(ticks);
        self.0.rest_all(stopping);
        self.0.resume_all(starting);
    }

    fn run_until(&mut self, ticks: u64) {
        // A counter that overflows begins again, and no user waits for it.
        let _ = self.0.overflows_until(ticks);
    }

    /// Returns their values after so many ticks.
    pub fn read(&mut self, ticks: u64) -> HostCounts {
        self.run_until(ticks);
        let [cycles, reference_cycles, idle] = [CYCLES, REFERENCE_CYCLES, IDLE].map(|slot| self.0.read(slot));
        HostCounts { cycles, reference_cycles, idle }
    }
}

#[cfg(test)]
#[path = "host_time_tests.rs"]
mod tests;
