// SPDX-License-Identifier: MIT OR Apache-2.0
//! The surroundings as the boot CPU reaches them: the traits of `bringup`.

use bringup::{Clock, Kick, Wake};

use super::{LINES_PER_POLL, World};

impl Clock for World<'_> {
    fn now(&mut self) -> u64 {
        self.spend(self.machine.read_clock);
        self.now
    }
}

impl Wake for World<'_> {
    fn wake(&mut self, index: u32) {
        self.spend(self.machine.interrupt);
        self.interrupt_at(index, self.now);
    }
}

impl Kick for World<'_> {
    fn pause(&mut self) {
        self.spend(self.machine.pause);
    }

    fn sleep(&mut self, until: u64) {
        loop {
            let end = self.boot_wake.unwrap_or(u64::MAX).min(until).max(self.now);
            let Some((time, index)) = self.next_due().filter(|due| due.0 < end) else {
                // It checks unresponsive CPUs when it wakes by itself.
                let is_poll = self.boot_wake.take().is_none_or(|wake| wake > until);
                self.now = end;
                return self.read_lines(if is_poll { LINES_PER_POLL } else { 0 });
            };
            self.due.pop();
            self.now = self.now.max(time);
            self.happen(index, time);
        }
    }

    fn send_init(&mut self, apic_id: u32) {
        self.spend(self.machine.interrupt);
        self.crew.index_of(apic_id).into_iter().for_each(|index| self.reset(index));
    }

    fn send_startup(&mut self, apic_id: u32, _: u8) {
        self.spend(self.machine.interrupt);
        self.crew.index_of(apic_id).into_iter().for_each(|index| self.start(index));
    }

    fn broadcast_init(&mut self) {
        self.spend(self.machine.interrupt);
        self.others().for_each(|index| self.reset(index));
    }

    fn broadcast_startup(&mut self, _: u8) {
        self.spend(self.machine.interrupt);
        self.others().for_each(|index| self.start(index));
    }

    fn set_reset_vector(&mut self, _: u8) {
        self.spend(self.machine.reset_vector);
    }

    fn clear_reset_vector(&mut self) {
        self.spend(self.machine.reset_vector);
    }

    fn release(&mut self, index: u32) -> bool {
        self.spend(self.machine.line);
        self.release_at(index, self.now)
    }

    fn given_up(&mut self, index: u32) {
        self.slots.get(index as usize).into_iter().for_each(|slot| _ = slot.condemn());
    }
}
