// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assignment of events to counters, and the events that count.

use super::{Bank, HostEvent, Policy, SLOTS, slots};
use crate::schedule::{Rotation, assign};
use crate::{Backend, Counter, CounterSet, Event};

impl<B: Backend> Bank<B> {
    /// Slots that are to count and do: the others wait for a counter, or cannot be counted at all.
    pub fn on_counters(&self) -> u16 {
        (0..SLOTS).filter(|&slot| self.counter(slot).is_some()).fold(0, |all, slot| all | 1 << slot) & self.wanted
    }

    #[inline(always)]
    pub(super) fn counter(&self, slot: usize) -> Option<Counter> {
        self.events[slot]?.counter
    }

    #[inline(always)]
    pub(super) fn counters_of(&self, of: u16) -> CounterSet {
        let counters = slots(of).filter_map(|slot| self.counter(slot));
        counters.fold(CounterSet::EMPTY, |all, counter| all.or(CounterSet::only(counter)))
    }

    pub(super) fn slots_of(&self, counters: CounterSet) -> u16 {
        let is_in = |slot: &usize| self.counter(*slot).is_some_and(|counter| counters.contains(counter));
        slots(self.present).filter(is_in).fold(0, |slots, slot| slots | 1 << slot)
    }

    #[inline(always)]
    pub(super) fn pause(&mut self, slot: usize) {
        self.wanted &= !(1 << slot);
        if let Some(counter) = self.counter(slot) {
            self.stop(CounterSet::only(counter));
        }
    }

    /// Counters of this user's stop, if they are its own now.
    #[inline(always)]
    pub(super) fn stop(&mut self, stopping: CounterSet) {
        if self.is_in {
            self.backend.stop(stopping);
            self.counting = self.counting.without(stopping);
        }
    }

    #[inline(always)]
    pub(super) fn start(&mut self, starting: CounterSet) {
        self.backend.start(starting);
        self.counting = self.counting.or(starting);
    }

    #[inline(always)]
    pub(super) fn go_on(&mut self, slot: usize) {
        self.wanted |= 1 << slot;
        self.used |= 1 << slot;
        match self.counter(slot) {
            _ if !self.is_in => {}
            Some(counter) => self.start(CounterSet::only(counter)),
            None if self.is_hopeless(slot) => {}
            None => self.schedule(false),
        }
    }

    /// No counter of this CPU counts its event: to schedule again gives it none.
    pub(super) fn is_hopeless(&self, slot: usize) -> bool {
        self.events[slot].is_none_or(|held| self.backend.able(&held.event).is_empty())
    }

    /// Another event, or none: the one that was there is released.
    pub(super) fn replace(&mut self, slot: usize, event: Option<&Event>) {
        if self.events[slot].is_some() {
            self.pause(slot);
            self.release(slot);
        }
        self.wanted &= !(1 << slot);
        let Some(event) = event else { return };
        self.wanted |= 1 << slot;
        self.used |= 1 << slot;
        self.present |= 1 << slot;
        self.events[slot] = Some(HostEvent { event: *event, counter: None });
        if !self.is_in {
            return;
        }
        let free = self.backend.able_for(slot, event).and(self.available).without(self.held);
        match free.lowest() {
            Some(counter) if self.policy == Policy::Direct => {
                self.assign(slot, counter);
                self.go_on(slot);
            }
            None if self.policy == Policy::Direct && self.is_hopeless(slot) => {}
            _ => self.schedule(false),
        }
    }

    /// Takes a slot's event off the CPU; the value stays the user's. An event that is to count comes back when it can.
    pub(super) fn release(&mut self, slot: usize) {
        if let Some(counter) = self.counter(slot) {
            if self.is_in {
                self.values[slot] = self.backend.read(counter);
                self.backend.clear(counter);
                self.work.released += 1;
            }
            self.held = self.held.without(CounterSet::only(counter));
        }
        let is_wanted = self.wanted & 1 << slot != 0;
        match &mut self.events[slot] {
            Some(held) if is_wanted => held.counter = None,
            event => {
                *event = None;
                self.present &= !(1 << slot);
            }
        }
    }

    pub(super) fn assign(&mut self, slot: usize, counter: Counter) {
        let Some(held) = &mut self.events[slot] else { return };
        held.counter = Some(counter);
        self.held = self.held.or(CounterSet::only(counter));
        self.backend.program(counter, &held.event, self.values[slot]);
        self.work.created += 1;
    }

    /// All events that are to count are given counters again; an event that has to move does, and those that rest make
    /// way. `are_out`: nothing is in the counters.
    pub(super) fn schedule(&mut self, are_out: bool) {
        self.work.scheduled += 1;
        self.stop_all();
        let mut able = [CounterSet::EMPTY; SLOTS];
        for (slot, able) in able.iter_mut().enumerate().filter(|(slot, _)| self.wanted & 1 << slot != 0) {
            *able = self.events[slot].map_or(CounterSet::EMPTY, |held| self.backend.able_for(slot, &held.event));
        }
        let given = if self.rotation == Rotation::default() {
            assign(&able, self.available)
        } else {
            self.rotation.assign(&able, self.available)
        };
        let is_in = core::mem::replace(&mut self.is_in, !are_out);
        for (slot, given) in given.iter().enumerate() {
            if self.counter(slot).is_some() && (are_out || self.counter(slot) != *given) {
                self.release(slot);
            }
        }
        self.is_in = is_in;
        for (slot, counter) in given.into_iter().enumerate() {
            if let (Some(counter), Some(HostEvent { counter: None, .. })) = (counter, self.events[slot]) {
                self.assign(slot, counter);
            }
        }
        self.start_wanted();
    }

    pub(super) fn stop_all(&mut self) {
        self.backend.stop(self.counting);
        self.counting = CounterSet::EMPTY;
    }

    pub(super) fn start_wanted(&mut self) {
        for slot in slots(self.wanted) {
            if let Some(counter) = self.counter(slot) {
                self.used |= 1 << slot;
                self.counting = self.counting.or(CounterSet::only(counter));
            }
        }
        self.backend.start(self.counting);
    }
}
