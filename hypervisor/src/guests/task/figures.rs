// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's figures, as an observer outside the guest reads them.

use pmu::guest::{Counts, View};
use pmu::{Modes, What};
use sched::Times;
use wire::{PerfCounter, PerfEvent, PerfState, VcpuPerf};

use super::Task;
use crate::arch::{cpu, timer};
use crate::guests::guest::figures::exits_of;

impl Task {
    /// Publishes its statistics if they are wanted. It is not in its guest; `times` states how this CPU has spent its
    /// time.
    pub fn publish_figures(&mut self, times: Times) {
        let guest = self.instance.guest.clone();
        if let Some(figures) = guest.figures.get(self.index) {
            figures.publish(|| self.figures(times));
        }
    }

    /// Ticks that it has spent in its guest while its time was counted.
    pub fn guest_ticks(&self) -> u64 {
        self.vcpu.guest_ticks()
    }

    /// Sets whether its time is counted for the host.
    pub fn count_for_host(&mut self, wanted: bool) {
        self.vcpu.count_time_for_host(wanted);
        self.vcpu.choose_switch();
    }

    fn figures(&mut self, times: Times) -> VcpuPerf {
        let counted_ticks = self.vcpu.guest_ticks();
        let held = self.held_since.map_or(0, |since| cpu::tsc().saturating_sub(since));
        let waited = self.stolen_before.saturating_add(times.stolen.0).saturating_add(held);
        VcpuPerf {
            at_ns: timer::uptime_ns(),
            ran_ns: timer::ticks_to_ns(self.ran_before.saturating_add(times.running.0)),
            waited_ns: timer::ticks_to_ns(waited),
            counted_ticks,
            exits: exits_of(&self.instance.guest.exits, self.index..self.index + 1),
            counters: self.cpu.counter_views(counted_ticks).into_iter().map(to_wire).collect(),
        }
    }
}

fn to_wire(view: View) -> PerfCounter {
    let Modes { user, kernel } = view.modes;
    let fixed = view.counter.fixed_number();
    PerfCounter {
        number: fixed.unwrap_or(view.counter.index()),
        is_fixed: fixed.is_some(),
        event: match view.what {
            What::Cycles => PerfEvent::Cycles,
            What::ReferenceCycles => PerfEvent::ReferenceCycles,
            What::Instructions => PerfEvent::Instructions,
            What::Vendor { select, unit } => PerfEvent::Vendor { select, unit },
        },
        user,
        kernel,
        state: match view.counts {
            Counts::Truly => PerfState::Counts,
            Counts::Stopped => PerfState::Stopped,
            Counts::Never => PerfState::NotCounted,
        },
        value: view.value,
        overflows: view.overflows,
    }
}
