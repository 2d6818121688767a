// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of one user of the counters, and the counters that they are on.
//!
//! | policy | a change of what is to be counted | a switch |
//! |---|---|---|
//! | [`Policy::Reprogram`], the baseline | the event is released and another created, for which all are scheduled again | every event is released, and created again |
//! | [`Policy::Direct`] | goes to the counter that the event has; only another event is created | values are saved and restored; an event that has not counted for a whole turn is released |
//!
//! Between [`Bank::switch_out`] and [`Bank::switch_in`] the counters belong to another user, and nothing here touches
//! them.

mod assigning;
mod policy;
mod turn;

use crate::schedule::Rotation;
use crate::{Backend, Counter, CounterSet, Event};

pub use policy::{Policy, UnknownPolicy, Work};

/// The most events of one user.
pub const SLOTS: usize = 12;

/// An event that exists on the CPU.
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

    /// The CPU's counters.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Returns the backend, for changes that do not concern events on counters.
    pub(crate) fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Changes the backend otherwise: afterwards all events that are to count are on it again. Overflows have been
    /// taken.
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

    /// Returns whether a slot has its event on this counter.
    pub fn is_on(&self, slot: usize, counter: Counter) -> bool {
        self.counter(slot) == Some(counter)
    }

    /// Returns the policy, which determines the cost of a change.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns the number of operations so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Returns whether anything is to count.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.wanted != 0
    }

    /// Returns whether there are events at all: only then does the end of its turn concern it.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.wanted != 0 || !self.held.is_empty()
    }

    /// Returns whether it is its turn.
    #[inline]
    pub fn is_in(&self) -> bool {
        self.is_in
    }

    /// Returns the counters that hold events: no other user has them meanwhile.
    pub fn held(&self) -> CounterSet {
        self.held
    }

    /// See [`Backend::ticks_to_overflow`].
    #[inline(always)]
    pub fn ticks_to_overflow(&self) -> Option<u64> {
        self.backend.ticks_to_overflow()
    }

    /// Returns a slot's value.
    #[inline]
    pub fn read(&mut self, slot: usize) -> u64 {
        match self.counter(slot) {
            Some(counter) if self.is_in => self.backend.read(counter),
            _ => self.values[slot],
        }
    }

    /// Sets a slot's value.
    #[inline(always)]
    pub fn write(&mut self, slot: usize, value: u64) {
        let value = value & self.backend.width().mask();
        match self.counter(slot) {
            Some(counter) if self.is_in => self.backend.write(counter, value),
            _ => self.values[slot] = value,
        }
    }

    /// Has a slot count this event from now on, or nothing. An event that it counts already goes on undisturbed.
    #[inline]
    pub fn count(&mut self, slot: usize, event: Option<&Event>) {
        let Some(event) = event else { return self.rest(slot) };
        let is_held = self.events[slot].is_some_and(|held| held.event == *event);
        if !is_held || !self.is_wanted(slot) && !self.resume(slot) {
            self.replace(slot, Some(event));
        }
    }

    /// Has a slot count nothing from now on.
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

    /// Has a slot count again the event that it counted last, if that is kept; returns whether it is.
    #[inline(always)]
    pub fn resume(&mut self, slot: usize) -> bool {
        let is_kept = self.policy == Policy::Direct && self.events[slot].is_some();
        if is_kept && !self.is_wanted(slot) {
            self.go_on(slot);
        }
        is_kept
    }

    /// Has these slots count nothing from now on.
    #[inline(always)]
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

    /// Has these slots count again the events that they counted last, where those are kept and on a counter; returns
    /// the slots where they are not.
    #[inline(always)]
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
}

/// The slots of a set, the lowest first.
#[inline(always)]
pub(crate) fn slots(set: u16) -> impl Iterator<Item = usize> {
    CounterSet(u64::from(set) & ((1 << SLOTS) - 1)).map(|slot| usize::from(slot.index()))
}
