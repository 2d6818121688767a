// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of one user of the counters, and the counters that they are on.
//!
//! | policy | a change of what is to be counted | a switch |
//! |---|---|---|
//! | [`Policy::Reprogram`], the baseline | the event is released and another created, for which all are scheduled anew | every event is released, and created again |
//! | [`Policy::Direct`] | goes to the counter that the event has; only another event is created | values are saved and restored; an event that has not counted for a whole turn is released |
//!
//! Between [`Bank::switch_out`] and [`Bank::switch_in`] the counters are somebody else's, and nothing here touches them.

use crate::schedule::{Rotation, assign};
use crate::{Backend, Counter, CounterSet, Event};

/// The most events of one user.
pub const SLOTS: usize = 12;

/// What a change costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// An event for each change.
    Reprogram,
    /// Events are kept and used again.
    #[default]
    Direct,
}

/// No policy is called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl core::str::FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "reprogram" => Ok(Self::Reprogram),
            "direct" => Ok(Self::Direct),
            _ => Err(UnknownPolicy),
        }
    }
}

/// How often what was done, for whoever measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Work {
    /// Events that were given to a counter.
    pub created: u64,
    /// Events that were taken from one.
    pub released: u64,
    /// Times all events were scheduled anew.
    pub scheduled: u64,
}

/// An event that exists on the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostEvent {
    event: Event,
    /// None: there was no room for it.
    counter: Option<Counter>,
}

/// The events of one user, each in a slot of its own.
#[derive(Clone, Debug)]
pub struct Bank<B> {
    backend: B,
    policy: Policy,
    /// Counters that are this user's while it is its turn.
    available: CounterSet,
    events: [Option<HostEvent>; SLOTS],
    /// Values of those that are on no counter, or of all while it is not its turn.
    values: [u64; SLOTS],
    /// Slots that are to count.
    wanted: u16,
    /// Slots that have an event.
    present: u16,
    /// Slots that have counted in this turn.
    used: u16,
    /// Counters that have events.
    held: CounterSet,
    /// Counters that are counting for them.
    counting: CounterSet,
    is_in: bool,
    rotation: Rotation,
    work: Work,
}

impl<B: Backend> Bank<B> {
    /// No events; it is not its turn.
    pub fn new(backend: B, policy: Policy) -> Self {
        Self {
            backend,
            policy,
            available: CounterSet::EMPTY,
            events: [None; SLOTS],
            values: [0; SLOTS],
            wanted: 0,
            present: 0,
            used: 0,
            held: CounterSet::EMPTY,
            counting: CounterSet::EMPTY,
            is_in: false,
            rotation: Rotation::default(),
            work: Work::default(),
        }
    }

    /// The processor's counters.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// What of it does not concern events that are on counters.
    pub(crate) fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Another thing about the counters: afterwards all that is to count is on them anew. Overflows have been taken.
    pub fn change_backend(&mut self, change: impl FnOnce(&mut B)) {
        if !self.is_in {
            // The next turn schedules.
            slots(self.present).for_each(|slot| self.release(slot));
            self.available = CounterSet::EMPTY;
            return change(&mut self.backend);
        }
        self.save();
        change(&mut self.backend);
        self.is_in = true;
        self.schedule(true);
    }

    /// Slots that have their event on this counter.
    pub fn is_on(&self, slot: usize, counter: Counter) -> bool {
        self.counter(slot) == Some(counter)
    }

    /// What a change costs.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What has been done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Whether anything is to count.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.wanted != 0
    }

    /// Whether there are events at all: only then does the end of its turn concern it.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.wanted != 0 || !self.held.is_empty()
    }

    /// Whether it is its turn.
    #[inline]
    pub fn is_in(&self) -> bool {
        self.is_in
    }

    /// Counters that hold events: nobody else's while they do.
    pub fn held(&self) -> CounterSet {
        self.held
    }

    /// The user has run for so many ticks (see [`Backend::run_until`]).
    #[inline(always)]
    pub fn run_until(&mut self, ticks: u64) {
        self.backend.run_until(ticks);
    }

    /// See [`Backend::ticks_to_overflow`].
    #[inline(always)]
    pub fn ticks_to_overflow(&self) -> Option<u64> {
        self.backend.ticks_to_overflow()
    }

    /// A slot's value.
    #[inline]
    pub fn read(&mut self, slot: usize) -> u64 {
        match self.counter(slot) {
            Some(counter) if self.is_in => self.backend.read(counter),
            _ => self.values[slot],
        }
    }

    /// Sets it.
    #[inline]
    pub fn write(&mut self, slot: usize, value: u64) {
        let value = value & self.backend.width().mask();
        match self.counter(slot) {
            Some(counter) if self.is_in => self.backend.write(counter, value),
            _ => self.values[slot] = value,
        }
    }

    /// From now on a slot counts this event, or nothing. What it counts already goes on undisturbed.
    #[inline]
    pub fn count(&mut self, slot: usize, event: Option<&Event>) {
        let Some(event) = event else { return self.rest(slot) };
        let is_held = self.events[slot].is_some_and(|held| held.event == *event);
        if !is_held || !self.is_wanted(slot) && !self.resume(slot) {
            self.replace(slot, Some(event));
        }
    }

    /// From now on a slot counts nothing.
    #[inline(always)]
    pub fn rest(&mut self, slot: usize) {
        if !self.is_wanted(slot) {
            return;
        }
        match self.policy {
            Policy::Direct => self.pause(slot),
            Policy::Reprogram => self.replace(slot, None),
        }
    }

    /// From now on a slot counts again what it counted last, if that is kept; says whether it is.
    #[inline(always)]
    pub fn resume(&mut self, slot: usize) -> bool {
        let is_kept = self.policy == Policy::Direct && self.events[slot].is_some();
        if is_kept && !self.is_wanted(slot) {
            self.go_on(slot);
        }
        is_kept
    }

    /// From now on these slots count nothing.
    pub fn rest_all(&mut self, resting: u16) {
        let resting = resting & self.wanted;
        match self.policy {
            Policy::Direct => {
                self.wanted &= !resting;
                self.stop(self.counters_of(resting));
            }
            Policy::Reprogram => slots(resting).for_each(|slot| self.replace(slot, None)),
        }
    }

    /// From now on these slots count again what they counted last, where that is kept and on a counter; returns those where it
    /// is not.
    pub fn resume_all(&mut self, resuming: u16) -> u16 {
        if self.policy == Policy::Reprogram || !self.is_in {
            return resuming;
        }
        let (mut resumed, mut starting) = (0, CounterSet::EMPTY);
        for slot in slots(resuming) {
            if let Some(counter) = self.counter(slot) {
                resumed |= 1 << slot;
                starting = starting.or(CounterSet::only(counter));
            }
        }
        self.wanted |= resumed;
        self.used |= resumed;
        self.start(starting);
        resuming & !resumed
    }

    #[inline(always)]
    fn is_wanted(&self, slot: usize) -> bool {
        self.wanted & 1 << slot != 0
    }

    /// Which slots have overflowed since this was last asked.
    #[inline(always)]
    pub fn take_overflows(&mut self) -> u16 {
        if !self.is_in {
            return 0;
        }
        let overflowed = self.backend.take_overflows(self.held);
        if overflowed.is_empty() { 0 } else { self.slots_of(overflowed) }
    }

    /// Its turn begins, with these counters. They are stopped, and nobody's.
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

    /// Its turn ends: what the counters say is kept, and nothing of it is left in them, unless they are its own anyway. Overflows
    /// have been taken.
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
        if !B::IS_PRIVATE {
            self.save();
        }
    }

    /// What the counters say is kept, and they are left.
    fn save(&mut self) {
        self.stop_all();
        for slot in slots(self.present) {
            if let Some(counter) = self.counter(slot) {
                self.values[slot] = self.backend.read(counter);
                self.backend.clear(counter);
            }
        }
        self.is_in = false;
    }

    /// Where there are more events than counters: others have them from now on.
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

    /// Slots that are to count and do: the others wait for a counter, or cannot be counted at all.
    pub fn on_counters(&self) -> u16 {
        (0..SLOTS).filter(|&slot| self.counter(slot).is_some()).fold(0, |all, slot| all | 1 << slot) & self.wanted
    }

    #[inline(always)]
    fn counter(&self, slot: usize) -> Option<Counter> {
        self.events[slot]?.counter
    }

    #[inline(always)]
    fn counters_of(&self, of: u16) -> CounterSet {
        let counters = slots(of).filter_map(|slot| self.counter(slot));
        counters.fold(CounterSet::EMPTY, |all, counter| all.or(CounterSet::only(counter)))
    }

    fn slots_of(&self, counters: CounterSet) -> u16 {
        let is_in = |slot: &usize| self.counter(*slot).is_some_and(|counter| counters.contains(counter));
        slots(self.present).filter(is_in).fold(0, |slots, slot| slots | 1 << slot)
    }

    #[inline(always)]
    fn pause(&mut self, slot: usize) {
        self.wanted &= !(1 << slot);
        if let Some(counter) = self.counter(slot) {
            self.stop(CounterSet::only(counter));
        }
    }

    /// Counters of this user's stop, if they are its own now.
    #[inline(always)]
    fn stop(&mut self, stopping: CounterSet) {
        if self.is_in {
            self.backend.stop(stopping);
            self.counting = self.counting.without(stopping);
        }
    }

    #[inline(always)]
    fn start(&mut self, starting: CounterSet) {
        self.backend.start(starting);
        self.counting = self.counting.or(starting);
    }

    #[inline(always)]
    fn go_on(&mut self, slot: usize) {
        self.wanted |= 1 << slot;
        self.used |= 1 << slot;
        match self.counter(slot) {
            _ if !self.is_in => {}
            Some(counter) => self.start(CounterSet::only(counter)),
            None if self.is_hopeless(slot) => {}
            None => self.schedule(false),
        }
    }

    /// No counter of this processor counts its event: to schedule anew gives it none.
    fn is_hopeless(&self, slot: usize) -> bool {
        self.events[slot].is_none_or(|held| self.backend.able(&held.event).is_empty())
    }

    /// Another event, or none: the one that was there is released.
    fn replace(&mut self, slot: usize, event: Option<&Event>) {
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
                self.seat(slot, counter);
                self.go_on(slot);
            }
            None if self.policy == Policy::Direct && self.is_hopeless(slot) => {}
            _ => self.schedule(false),
        }
    }

    /// Its event is no more on the processor; the value stays the user's. What is to count comes back when it can.
    fn release(&mut self, slot: usize) {
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

    fn seat(&mut self, slot: usize, counter: Counter) {
        let Some(held) = &mut self.events[slot] else { return };
        held.counter = Some(counter);
        self.held = self.held.or(CounterSet::only(counter));
        self.backend.program(counter, &held.event, self.values[slot]);
        self.work.created += 1;
    }

    /// All events that are to count are given counters anew; who has to move does, and those that rest make way. `are_out`:
    /// nothing is in the counters.
    fn schedule(&mut self, are_out: bool) {
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
                self.seat(slot, counter);
            }
        }
        self.start_wanted();
    }

    fn stop_all(&mut self) {
        self.backend.stop(self.counting);
        self.counting = CounterSet::EMPTY;
    }

    fn start_wanted(&mut self) {
        for slot in slots(self.wanted) {
            if let Some(counter) = self.counter(slot) {
                self.used |= 1 << slot;
                self.counting = self.counting.or(CounterSet::only(counter));
            }
        }
        self.backend.start(self.counting);
    }
}

/// The slots of a set, the lowest first.
#[inline(always)]
pub(crate) fn slots(set: u16) -> impl Iterator<Item = usize> {
    CounterSet(u64::from(set) & ((1 << SLOTS) - 1)).map(|slot| usize::from(slot.index()))
}
