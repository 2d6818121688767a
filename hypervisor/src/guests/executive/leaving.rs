// SPDX-License-Identifier: MIT OR Apache-2.0
//! vCPUs that go to another CPU: because theirs leaves the host, or because the one to which they
//! belong is online again.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sched::placement::{NoRoom, spread};
use sched::{Leaving, State, Ticks};

use super::{Executive, homes};
use crate::arch::cpu;
use crate::arch::percpu::{self, BOOT_CPU};
use crate::guests::task::Task;
use crate::guests::{device_interrupts, placement};
use crate::kernel::cpus;
use crate::kernel::places::{self, SLOTS};

impl Executive {
    /// Carries out the order to leave the host, if there is one: every vCPU moves to another CPU, then the loop ends.
    /// Where they do not all find room the CPU stays, and no guest has lost anything.
    pub fn leave_if_asked(&mut self) {
        let order = cpus::leave_order(self.me.index);
        if order.progress() != Leaving::Asked {
            return;
        }
        let has_left = match self.targets() {
            // From here on the operator waits; before it, the order may be gone.
            Ok(_) if !order.begin() => return,
            Ok(_) => self.give_all_away(),
            Err(NoRoom) => false,
        };
        if !has_left {
            order.refuse();
            percpu::wake(BOOT_CPU);
        }
        self.has_left = has_left;
    }

    /// Sends vCPUs to their own CPUs, where those are online.
    pub(super) fn send_home(&mut self) {
        for slot in 0..SLOTS {
            let own = self.slots[slot].as_ref().map(|task| task.own_cpu());
            if let Some(own) = own.filter(|own| *own != self.me.index && places::is_open(*own)) {
                self.send_away(slot, own);
            }
        }
        homes::send_home(self.me.index);
        self.count();
    }

    fn give_all_away(&mut self) -> bool {
        places::close(self.me.index);
        // Any vCPU that was on the way is here by now, and none follows.
        self.receive();
        let is_empty = self.send_all_away() && homes::move_homes(self.me.index);
        if is_empty {
            device_interrupts::leave(self.me);
        } else {
            places::reopen(self.me.index);
        }
        is_empty
    }

    /// Twice: guests may have been started meanwhile where there was room.
    fn send_all_away(&mut self) -> bool {
        for _ in 0..2 {
            let Ok(targets) = self.targets() else { return false };
            targets.into_iter().for_each(|(slot, to)| self.send_away(slot, to));
            if self.slots.iter().all(Option::is_none) {
                return true;
            }
        }
        false
    }

    /// Returns where each would go: the heaviest first, each to the one that has least to do.
    fn targets(&self) -> Result<Vec<(usize, u32)>, NoRoom> {
        let weight = |(slot, task): (usize, &Option<Box<Task>>)| Some((slot, u32::from(task.as_ref()?.weight().get())));
        let (slots, weights): (Vec<usize>, Vec<u32>) = self.slots.iter().enumerate().filter_map(weight).unzip();
        let mut loads = places::loads();
        loads.retain(|load| load.cpu != self.me.index);
        let mut targets = Vec::with_capacity(slots.len());
        spread(&weights, &mut loads, |mover, to| targets.push((slots[mover], to)))?;
        Ok(targets)
    }

    /// Sends a vCPU to another CPU, with all that is in this one of it. It stays if that takes no
    /// more.
    fn send_away(&mut self, slot: usize, to: u32) {
        self.count_departure(slot);
        let Some(mut task) = self.slots[slot].take() else { return };
        let now = Ticks(cpu::tsc());
        self.queue.account(now);
        let wants_to_run = self.queue.state(slot).is_some_and(|state| state != State::Blocked);
        if self.loaded == Some(slot) {
            self.loaded = None;
            task.switch_out(wants_to_run);
        }
        let times = self.queue.remove(slot, now).unwrap_or_default();
        self.paused &= !(1 << slot);
        task.depart(times, wants_to_run);
        let weight = task.weight();
        match placement::send(task, to) {
            Ok(()) => places::vacate(self.me.index, weight),
            Err(task) => {
                self.take_in(task);
                // Should its guest be paused, it stands still again.
                self.me.calls.for_work();
            }
        }
    }
}
