// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own counters on each CPU, while they are wanted: a user beside its guests. Guests' time is counted
//! meanwhile whether theirs count or not; without the host's, none of this is on any path.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};

use pmu::host_time::HostCounters;
use wire::{CpuPerf, GuestTicks};

use super::{Counting, Executive};
use crate::arch::{cpu, timer};
use crate::kernel::places::SLOTS;

static ARE_WANTED: AtomicBool = AtomicBool::new(false);

/// Sets whether every CPU is to have the host's counters.
pub fn want(are_wanted: bool) {
    ARE_WANTED.store(are_wanted, Ordering::Relaxed);
}

fn are_wanted() -> bool {
    ARE_WANTED.load(Ordering::Relaxed)
}

impl Executive {
    /// Begins them, reads them and ends them as it is wanted. No guest executes.
    pub(super) fn follow_counts(&mut self) {
        match (are_wanted(), self.counting.is_some()) {
            (true, false) => self.begin_counting(),
            (false, true) => self.end_counting(),
            (false, false) => return,
            (true, true) => {}
        }
        let (ticks, now) = self.host_ticks();
        if let Some(counting) = &mut self.counting {
            let counts = counting.counters.read(ticks);
            let (since, began_ns, gone_ticks) = (counting.since, counting.began_ns, counting.gone);
            self.me.figures.publish(|| CpuPerf {
                at_ns: timer::uptime_ns(),
                began_ns,
                ticks: now - since,
                host_cycles: counts.cycles,
                host_reference_cycles: counts.reference_cycles,
                idle_ticks: counts.idle,
                gone_ticks,
                guests: self.guests_ticks().collect(),
            });
        }
    }

    /// A vCPU has come to this slot.
    pub(super) fn count_arrival(&mut self, slot: usize) {
        if let (Some(counting), Some(task)) = (&mut self.counting, &mut self.slots[slot]) {
            task.count_for_host(true);
            counting.came[slot] = task.guest_ticks();
        }
    }

    /// The one in this slot goes.
    pub(super) fn count_departure(&mut self, slot: usize) {
        if let (Some(counting), Some(task)) = (&mut self.counting, &mut self.slots[slot]) {
            task.count_for_host(false);
            counting.gone += task.guest_ticks() - counting.came[slot];
        }
    }

    /// Waits for the next interrupt; interrupts are masked.
    pub(super) fn counted_wait(&mut self) {
        let (ticks, _) = self.host_ticks();
        self.counting.iter_mut().for_each(|counting| counting.counters.wait(ticks));
        self.me.wait_for_interrupt();
        let (ticks, _) = self.host_ticks();
        self.counting.iter_mut().for_each(|counting| counting.counters.go_on(ticks));
    }

    fn begin_counting(&mut self) {
        let counters = HostCounters::begin();
        let (since, began_ns) = (cpu::tsc(), timer::uptime_ns());
        self.counting = Some(Box::new(Counting { counters, since, began_ns, came: [0; SLOTS], gone: 0 }));
        (0..SLOTS).for_each(|slot| self.count_arrival(slot));
    }

    fn end_counting(&mut self) {
        (0..SLOTS).for_each(|slot| self.count_departure(slot));
        self.counting = None;
    }

    /// Ticks that were no guest's since they were begun, and the time at which that was so.
    fn host_ticks(&self) -> (u64, u64) {
        let now = cpu::tsc();
        let guests: u64 = self.guests_ticks().map(|guest| guest.ticks).sum();
        let others = self.counting.as_ref().map_or(0, |counting| counting.since + counting.gone);
        (now - others - guests, now)
    }

    /// Those that are here.
    fn guests_ticks(&self) -> impl Iterator<Item = GuestTicks> {
        let came = self.counting.as_ref().map(|counting| &counting.came);
        let here = self.slots.iter().zip(came.into_iter().flatten());
        here.filter_map(|(task, came)| {
            let task = task.as_ref()?;
            let guest = task.instance().guest.number;
            Some(GuestTicks { guest, vcpu: task.index() as u32, ticks: task.guest_ticks() - came })
        })
    }
}
