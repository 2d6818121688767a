// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user's turn: it begins and ends, and what has happened in it.

use super::{Bank, HostEvent, Policy, SLOTS, slots};
use crate::{Backend, CounterSet};

impl<B: Backend> Bank<B> {
    /// Returns which slots have overflowed since this was last asked.
    pub fn take_overflows(&mut self) -> u16 {
        if !self.is_in {
            return 0;
        }
        let overflowed = self.backend.take_overflows(self.held);
        self.slots_of(overflowed)
    }

    /// The user has run for so many ticks (see [`Backend::run_until`]): which slots have overflowed since this was last
    /// asked.
    #[inline(always)]
    pub fn overflows_until(&mut self, ticks: u64) -> u16 {
        // While it is another's turn, a CPU's counters are not this user's to check.
        if !self.backend.is_private() && !self.is_in {
            return 0;
        }
        let overflowed = self.backend.overflows_until(ticks, self.held);
        if overflowed.is_empty() { 0 } else { self.slots_of(overflowed) }
    }

    /// Begins its turn, with these counters. They are stopped, and belong to no user.
    pub fn switch_in(&mut self, available: CounterSet) {
        let available = available.and(self.backend.counters());
        if self.is_in && self.available == available {
            return;
        }
        if self.is_in {
            self.save();
        }
        let is_same = self.available == available;
        (self.is_in, self.available) = (true, available);
        if self.policy == Policy::Reprogram || !is_same {
            return self.schedule(true);
        }
        for slot in slots(self.present) {
            if let Some(HostEvent { event, counter: Some(counter) }) = self.events[slot] {
                self.backend.program(counter, &event, self.values[slot]);
            }
        }
        self.start_wanted();
    }

    /// Its turn ends: what the counters state is kept, and nothing of it is left in them, unless they are its own
    /// anyway. Overflows have been taken.
    pub fn switch_out(&mut self) {
        if !self.is_in {
            return;
        }
        if self.policy == Policy::Reprogram {
            self.stop_all();
            slots(self.present).for_each(|slot| self.release(slot));
            self.is_in = false;
            return;
        }
        slots(self.present & !self.wanted & !self.used).for_each(|slot| self.release(slot));
        self.used = self.wanted;
        if !self.backend.is_private() {
            self.save();
        }
    }

    /// Keeps the values of the counters, and leaves the counters.
    pub(super) fn save(&mut self) {
        self.stop_all();
        for slot in slots(self.present) {
            if let Some(counter) = self.counter(slot) {
                self.values[slot] = self.backend.read(counter);
                self.backend.clear(counter);
            }
        }
        self.is_in = false;
    }

    /// Where there are more events than counters: gives the counters to others from now on.
    pub fn rotate(&mut self) {
        let is_short = self.events.iter().flatten().any(|held| held.counter.is_none());
        if self.is_in && is_short {
            self.rotation.advance(SLOTS);
            self.schedule(false);
        }
    }

    /// All values.
    pub(crate) fn values(&mut self) -> [u64; SLOTS] {
        core::array::from_fn(|slot| self.read(slot))
    }
}
