// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to a CPU's vCPUs for the layers above, which hand them to another image or take them from one.

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use sched::{State, Ticks};

use super::Executive;
use crate::arch::cpu;
use crate::arch::virt::{Unavailable, Virt};
use crate::guests::task::Task;

impl Executive {
    /// The CPU's number.
    pub fn index(&self) -> u32 {
        self.me.index
    }

    /// The extension that runs guests on this CPU.
    pub fn virt(&self) -> Result<Virt, Unavailable> {
        self.virt
    }

    /// Charges the time until now to the vCPU that has run.
    pub fn account(&mut self) {
        self.queue.account(Ticks(cpu::tsc()));
    }

    /// Charges the time since [`Self::account`] to no vCPU.
    pub fn lose(&mut self) {
        self.queue.lose(Ticks(cpu::tsc()));
    }

    /// Takes every vCPU off the CPU, which another image may drive from now on. They keep their slots.
    pub fn leave_guests(&mut self) {
        self.unload();
        self.slots.iter_mut().flatten().for_each(|task| task.leave_cpu());
        if let Ok(virt) = self.virt {
            virt.lend();
        }
    }

    /// Puts those back that have left: the CPU stays this image's.
    pub fn return_to_guests(&mut self) {
        if let Ok(virt) = self.virt
            && let Err(unavailable) = virt.reclaim()
        {
            panic!("{unavailable}");
        }
        for (slot, task) in self.slots.iter_mut().enumerate() {
            if let Some(task) = task.as_mut().filter(|task| task.is_nowhere()) {
                task.arrive(slot as u32 + 1);
            }
        }
    }

    /// Every vCPU here; whether it wants to run, and for how many ticks others had the CPU meanwhile.
    pub fn vcpus(&self) -> impl Iterator<Item = (&Task, bool, u64)> {
        self.slots.iter().enumerate().filter_map(|(slot, task)| {
            let task = task.as_deref()?;
            let wants_to_run = self.queue.state(slot).is_some_and(|state| state != State::Blocked);
            Some((task, wants_to_run, self.queue.stolen_ticks(slot).0))
        })
    }

    /// Lets the next turn check everything that an interrupt would have announced while this CPU took none.
    pub fn check_everything(&self) {
        self.me.timer_fired.store(true, Ordering::Relaxed);
        self.me.calls.for_work();
    }

    /// Lets the next turn check every timer.
    pub fn check_timers(&self) {
        self.me.timer_fired.store(true, Ordering::Relaxed);
    }

    /// Chooses the next vCPU as a turn does, and changes nothing but the queue.
    pub fn choose_as_if(&mut self) {
        if let Some(choice) = self.queue.pick(Ticks(cpu::tsc())) {
            let _ = (self.queue.stolen_ticks(choice.slot), self.earliest_alarm());
        }
    }

    /// Takes every vCPU out again.
    pub fn take_all(&mut self, mut take: impl FnMut(Box<Task>)) {
        for slot in 0..self.slots.len() {
            if let Some(mut task) = self.slots[slot].take() {
                self.queue.remove(slot, Ticks(cpu::tsc()));
                task.leave_cpu();
                take(task);
            }
        }
    }
}
