// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a CPU that has none: their values follow from the time that a guest has run.
//!
//! Truly counted are cycles and reference cycles, in all modes at once: ticks of the time stamp counter that pass in
//! the guest. Not counted is all else: instructions, caches, branches, one mode without the other, cycles by threshold.

use crate::event::{Modes, Shape, What};
use crate::{Backend, Counter, CounterSet, Event, Width};

/// Number of counters; each can count any event.
pub const COUNTERS: usize = 12;
/// Places for them: so many that the number of any counter there is becomes one without a division.
const PLACES: usize = COUNTERS.next_power_of_two();

/// The counters of one vCPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Soft {
    /// Ticks that the guest has run.
    now: u64,
    counting: u16,
    /// Values of the counters, each less the ticks at which it was started while it counts.
    values: [u64; PLACES],
    overflowed: u16,
    /// Time of the next overflow of those that count, in ticks.
    next: u64,
}

impl Soft {
    /// None in use; the guest has run for so many ticks.
    pub const fn new(now: u64) -> Self {
        Self { now, counting: 0, values: [0; PLACES], overflowed: 0, next: u64::MAX }
    }

    const fn is_counting(&self, at: usize) -> bool {
        self.counting & 1 << at != 0
    }

    /// Returns when a counter that counts overflows.
    const fn due(&self, at: usize) -> u64 {
        (Width::USUAL.mask() + 1).wrapping_sub(self.values[at])
    }

    /// Notes the overflows of counters that are due.
    #[cold]
    fn note_overflows(&mut self) {
        for counter in CounterSet(self.counting.into()) {
            let at = place(counter);
            if self.due(at) <= self.now {
                self.overflowed |= 1 << at;
                let value = self.now.wrapping_add(self.values[at]) & Width::USUAL.mask();
                self.values[at] = value.wrapping_sub(self.now);
            }
        }
        self.find_next();
    }

    fn find_next(&mut self) {
        let due = CounterSet(self.counting.into()).map(|counter| self.due(place(counter)));
        self.next = due.min().unwrap_or(u64::MAX);
    }
}

fn place(counter: Counter) -> usize {
    counter.index() as usize % PLACES
}

fn places(counters: CounterSet) -> u16 {
    counters.0 as u16
}

impl Backend for Soft {
    /// They go where their vCPU goes, and its time stands still while it is away.
    #[inline(always)]
    fn is_private(&self) -> bool {
        true
    }

    fn counters(&self) -> CounterSet {
        CounterSet::first(COUNTERS as u8, 0)
    }

    fn width(&self) -> Width {
        Width::USUAL
    }

    #[inline(always)]
    fn able(&self, event: &Event) -> CounterSet {
        let is_time = matches!(event.what, What::Cycles | What::ReferenceCycles);
        let is_whole = event.modes == Modes::ALL && event.shape == Shape::default();
        if is_time && is_whole { CounterSet::first(COUNTERS as u8, 0) } else { CounterSet::EMPTY }
    }

    #[inline(always)]
    fn program(&mut self, counter: Counter, _event: &Event, value: u64) {
        self.overflowed &= !(1 << place(counter));
        self.write(counter, value);
    }

    #[inline(always)]
    fn clear(&mut self, counter: Counter) {
        let at = place(counter);
        self.values[at] = 0;
        self.overflowed &= !(1 << at);
    }

    #[inline(always)]
    fn start(&mut self, counters: CounterSet) {
        let starting = places(counters) & !self.counting;
        for counter in CounterSet(starting.into()) {
            let at = place(counter);
            self.values[at] = self.values[at].wrapping_sub(self.now);
            self.next = self.next.min(self.due(at));
        }
        self.counting |= starting;
    }

    #[inline(always)]
    fn stop(&mut self, counters: CounterSet) {
        let stopping = places(counters) & self.counting;
        let mut was_next = false;
        for counter in CounterSet(stopping.into()) {
            let at = place(counter);
            was_next |= self.due(at) == self.next;
            self.values[at] = self.values[at].wrapping_add(self.now);
        }
        self.counting &= !stopping;
        if was_next {
            self.find_next();
        }
    }

    #[inline(always)]
    fn read(&mut self, counter: Counter) -> u64 {
        let at = place(counter);
        let started = if self.is_counting(at) { self.now } else { 0 };
        self.values[at].wrapping_add(started)
    }

    #[inline(always)]
    fn write(&mut self, counter: Counter, value: u64) {
        let at = place(counter);
        let value = value & Width::USUAL.mask();
        if !self.is_counting(at) {
            self.values[at] = value;
            return;
        }
        let was_next = self.due(at) == self.next;
        self.values[at] = value.wrapping_sub(self.now);
        self.next = self.next.min(self.due(at));
        if was_next {
            self.find_next();
        }
    }

    #[inline(always)]
    fn take_overflows(&mut self, of: CounterSet) -> CounterSet {
        if self.overflowed == 0 {
            return CounterSet::EMPTY;
        }
        let taken = self.overflowed & places(of);
        self.overflowed &= !taken;
        CounterSet(taken.into())
    }

    #[inline(always)]
    fn run_until(&mut self, ticks: u64) {
        self.now = ticks;
        if self.next <= ticks {
            self.note_overflows();
        }
    }

    /// Returns the counters that overflow until `ticks`: only those that count can.
    #[inline(always)]
    fn overflows_until(&mut self, ticks: u64, of: CounterSet) -> CounterSet {
        self.now = ticks;
        if self.next > ticks {
            return CounterSet::EMPTY;
        }
        self.note_overflows();
        self.take_overflows(of)
    }

    #[inline(always)]
    fn ticks_to_overflow(&self) -> Option<u64> {
        if self.counting == 0 { None } else { Some(self.next.saturating_sub(self.now)) }
    }
}
