// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work that others leave for a CPU's vCPUs: arrivals, pauses and ends, console input, figures.

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use sched::Ticks;

use super::{Executive, homes};
use crate::arch::cpu;
use crate::guests::placement;
use crate::guests::task::Task;
use crate::kernel::console;
use crate::kernel::places::{self, SLOTS};

impl Executive {
    /// Does what others have left for this CPU: arrivals, pauses and ends of guests, orders, figures.
    pub fn work(&mut self) {
        console::log::notify_follower(self.me);
        self.machine_checks.account_for_damage(self.me);
        let is_homecoming = self.receive();
        self.slots.iter_mut().flatten().for_each(|task| task.follow_space());
        self.follow_guests();
        self.follow_weights();
        if is_homecoming {
            self.send_home();
        }
        homes::carry_out_orders(self.me.index, self.virt);
        self.poll_devices();
        self.publish_figures();
        self.follow_counts();
    }

    /// Takes the vCPUs that have arrived; returns whether a vCPU that belongs elsewhere is to go there.
    pub(super) fn receive(&mut self) -> bool {
        let (arrivals, is_homecoming) = places::take(self.me.index);
        for task in arrivals {
            match self.virt {
                Ok(_) => self.take_in(task),
                Err(_) => {
                    places::close(self.me.index);
                    places::vacate(self.me.index, task.weight());
                    placement::place_or_end(task, self.me.index);
                }
            }
        }
        self.count();
        is_homecoming
    }

    /// Takes in a vCPU, which was sent with a reserved place. It runs first, so that it checks for events on its way.
    pub fn take_in(&mut self, mut task: Box<Task>) {
        // No two have one tag, so that nothing need be flushed between them.
        let room = self.virt.map_or(0, places::room);
        let Some(slot) = self.slots.iter().take(room).position(Option::is_none) else {
            places::vacate(self.me.index, task.weight());
            return placement::place_or_end(task, self.me.index);
        };
        task.arrive(slot as u32 + 1);
        let now = Ticks(cpu::tsc());
        if let Err(error) = self.queue.insert(slot, task.weight(), now) {
            log::error!("CPU {}: {error}", self.me.index);
        }
        if !task.instance().is_paused() {
            let _ = self.queue.wake(slot, now);
        }
        self.slots[slot] = Some(task);
        self.count_arrival(slot);
    }

    /// vCPUs of guests that end let go; those of paused guests stand still.
    fn follow_guests(&mut self) {
        for slot in 0..SLOTS {
            let Some(task) = &mut self.slots[slot] else { continue };
            let now = Ticks(cpu::tsc());
            if task.instance().is_ending() {
                if self.loaded == Some(slot) {
                    self.unload();
                }
                self.queue.remove(slot, now);
                self.paused &= !(1 << slot);
                self.count_departure(slot);
                if let Some(mut task) = self.slots[slot].take() {
                    task.leave_cpu();
                    places::vacate(self.me.index, task.weight());
                    task.let_go();
                }
            } else if task.instance().is_paused() {
                self.queue.block(slot, now);
                if self.paused & 1 << slot == 0 {
                    task.publish_registers();
                }
                self.paused |= 1 << slot;
                if let Some(wish) = task.wish_to_be_saved() {
                    self.save_for_client(slot, wish);
                }
            } else if self.paused & 1 << slot != 0 {
                task.resume();
                // It runs, and waits again if it has to.
                let _ = self.queue.wake(slot, now);
                self.paused &= !(1 << slot);
            }
        }
        self.count();
    }

    /// Saves a vCPU that stands still, for a client.
    #[cold]
    fn save_for_client(&mut self, slot: usize, wish: u32) {
        if self.loaded == Some(slot) {
            self.unload();
        }
        if let Some(task) = &self.slots[slot] {
            task.save_for_client(wish);
        }
    }

    /// Applies changed weights of guests to their vCPUs.
    fn follow_weights(&mut self) {
        for (slot, task) in self.slots.iter_mut().enumerate() {
            if let Some((from, to)) = task.as_mut().and_then(|task| task.take_weight()) {
                self.queue.set_weight(slot, to, Ticks(cpu::tsc()));
                places::reweigh(self.me.index, from, to);
            }
        }
    }

    /// A kick can be meant for one vCPU only while there is but one.
    pub fn count(&self) {
        let holds_one = self.slots.iter().flatten().count() <= 1;
        self.me.holds_one.store(holds_one, Ordering::Relaxed);
    }

    /// First vCPUs poll their guests' devices: something was typed, or a device has more to do.
    fn poll_devices(&mut self) {
        for task in self.slots.iter_mut().flatten().filter(|task| task.index() == 0) {
            if task.instance().guest.take_wanted_poll() {
                task.poll_devices();
            }
        }
    }

    /// Publishes the statistics of vCPUs that are wanted.
    fn publish_figures(&mut self) {
        for (slot, task) in self.slots.iter_mut().enumerate() {
            if let Some(task) = task {
                task.publish_figures(self.queue.times(slot).unwrap_or_default());
            }
        }
    }
}
