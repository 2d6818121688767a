// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of an Intel CPU (Intel SDM vol. 3, chapter 20).
//!
//! The global control register alone reports the counters that count: a counter that is being set up never does.

use super::pebs;
use crate::event::{Shape, What, select};
use crate::intel::number::*;
use crate::intel::{CYCLES, INSTRUCTIONS, fixed};
use crate::vendor::Vendor;
use crate::{Backend, Counter, CounterSet, Event, Msrs, SLOTS, Width};

/// Bits of a fixed counter's field in the control register: OS and USR, which modes; an overflow interrupts.
const FIXED_FIELD_BITS: u32 = 4;
const FIXED_INTERRUPT: u64 = 1 << 3;

/// Content of CPUID leaf 0xA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The version; from 2 on there are the global registers.
    pub version: u8,
    /// General counters.
    pub general: u8,
    /// Counters of fixed purpose.
    pub fixed: u8,
    /// Bits of a counter.
    pub width: Width,
    /// Events of table 20-1 that it cannot count, a bit for each.
    pub unavailable: u32,
}

impl Description {
    /// From the leaf's registers and PERF_CAPABILITIES; `None` where there are no global registers, or where values
    /// cannot be written whole, so that a counter could not be given back what it had.
    pub fn from_cpuid(eax: u32, ebx: u32, edx: u32, capabilities: u64) -> Option<Self> {
        const WRITES_WHOLE: u64 = 1 << 13;
        let version = eax as u8;
        (version >= 2 && capabilities & WRITES_WHOLE != 0).then_some(Self {
            version,
            general: ((eax >> 8) as u8).min(8),
            fixed: (edx & 0x1f).min(3) as u8,
            width: Width::of_bits((eax >> 16) as u8),
            unavailable: ebx,
        })
    }
}

/// The counters of one CPU, as one of their users reaches them: control registers are shared with the others.
#[derive(Clone, Debug)]
pub struct Intel<M> {
    msrs: M,
    description: Description,
    precise: Precise,
    /// Counters that are to count for this user while it runs.
    counting: CounterSet,
    runs: bool,
}

/// Settings of PEBS for its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Precise {
    /// Slots whose event has to be on this counter: records go by its number. It interrupts by its buffer only.
    pub own: [Option<Counter>; SLOTS],
    /// Counters whose records are adaptive.
    pub adaptive: CounterSet,
}

impl<M: Msrs> Intel<M> {
    /// The CPU's counters as they are.
    pub const fn new(msrs: M, description: Description) -> Self {
        let precise = Precise { own: [None; SLOTS], adaptive: CounterSet::EMPTY };
        Self { msrs, description, precise, counting: CounterSet::EMPTY, runs: true }
    }

    /// Sets PEBS's settings, before the events are put on counters.
    pub fn set_precise(&mut self, precise: &Precise) {
        self.precise = *precise;
    }

    /// The user runs from now on. Until it is first reported that it does not, it always does.
    pub fn enter(&mut self) {
        self.runs = true;
        self.change(GLOBAL_CONTROL, 0, self.counting.0);
    }

    /// It does not run any more: nothing counts for it.
    pub fn leave(&mut self) {
        self.runs = false;
        self.change(GLOBAL_CONTROL, self.counting.0, 0);
    }

    /// Before they have a user: all stopped and without events, whatever firmware has left.
    pub fn reset(&mut self) {
        self.msrs.write(GLOBAL_CONTROL, 0);
        self.msrs.write(FIXED_CONTROL, 0);
        self.counters().for_each(|counter| self.clear(counter));
    }

    fn number(event: &Event) -> (u16, u8) {
        match event.what {
            What::Cycles => CYCLES,
            What::Instructions => INSTRUCTIONS,
            // Counted by its own counter only.
            What::ReferenceCycles => (0, 0),
            What::Vendor { select, unit } => (select, unit),
        }
    }

    fn fixed_of(event: &Event) -> Option<u8> {
        if event.shape != Shape::default() {
            return None;
        }
        match event.what {
            What::Instructions => Some(fixed::INSTRUCTIONS),
            What::Cycles => Some(fixed::CYCLES),
            What::ReferenceCycles => Some(fixed::REFERENCE_CYCLES),
            What::Vendor { .. } => None,
        }
    }

    fn change(&mut self, register: u32, clear: u64, set: u64) {
        let now = self.msrs.read(register);
        let next = now & !clear | set;
        if now != next {
            self.msrs.write(register, next);
        }
    }

    fn set_fixed_field(&mut self, number: u8, field: u64, adaptive: u64) {
        let shift = u32::from(number) * FIXED_FIELD_BITS;
        self.change(FIXED_CONTROL, 0xf << shift | pebs::fixed_adaptive(number), field << shift | adaptive);
    }

    /// An overflow interrupts; else it has a record written.
    fn interrupts(&self, counter: Counter) -> bool {
        !self.precise.own.contains(&Some(counter))
    }
}

impl<M: Msrs> Backend for Intel<M> {
    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor::Intel)
    }

    fn counters(&self) -> CounterSet {
        CounterSet::first(self.description.general, self.description.fixed)
    }

    fn width(&self) -> Width {
        self.description.width
    }

    fn able(&self, event: &Event) -> CounterSet {
        let unavailable = |bit: u32| self.description.unavailable & 1 << bit != 0;
        let is_missing = match event.what {
            What::Cycles => unavailable(0),
            What::Instructions => unavailable(1),
            What::ReferenceCycles | What::Vendor { .. } => false,
        };
        let fixed = Self::fixed_of(event).map_or(CounterSet::EMPTY, |number| CounterSet::only(Counter::fixed(number)));
        let general = match event.what {
            What::ReferenceCycles => 0,
            What::Vendor { select, .. } if select > 0xff => 0,
            _ => self.description.general,
        };
        if is_missing || event.modes.is_empty() {
            return CounterSet::EMPTY;
        }
        CounterSet::first(general, 0).or(fixed).and(self.counters())
    }

    fn able_for(&self, slot: usize, event: &Event) -> CounterSet {
        let own = self.precise.own.get(slot).copied().flatten();
        own.map_or(CounterSet(!0), CounterSet::only).and(self.able(event))
    }

    fn program(&mut self, counter: Counter, event: &Event, value: u64) {
        self.msrs.write(GLOBAL_CLEAR, CounterSet::only(counter).0);
        self.write(counter, value);
        let is_adaptive = self.precise.adaptive.contains(counter);
        match counter.fixed_number() {
            Some(number) => {
                // OS is the lower of the field's two bits, USR the upper.
                let modes = u64::from(event.modes.kernel) | u64::from(event.modes.user) << 1;
                let interrupt = if self.interrupts(counter) { FIXED_INTERRUPT } else { 0 };
                let adaptive = if is_adaptive { pebs::fixed_adaptive(number) } else { 0 };
                self.set_fixed_field(number, modes | interrupt, adaptive);
            }
            None => {
                let (number, unit) = Self::number(event);
                let interrupt = if self.interrupts(counter) { select::INTERRUPT } else { 0 };
                let adaptive = if is_adaptive { pebs::SELECT_ADAPTIVE } else { 0 };
                let bits = select::encode(event, number, unit) | select::ENABLE | interrupt | adaptive;
                self.msrs.write(SELECT + u32::from(counter.index()), bits);
            }
        }
    }

    fn clear(&mut self, counter: Counter) {
        match counter.fixed_number() {
            Some(number) => self.set_fixed_field(number, 0, 0),
            None => self.msrs.write(SELECT + u32::from(counter.index()), 0),
        }
        self.write(counter, 0);
        self.msrs.write(GLOBAL_CLEAR, CounterSet::only(counter).0);
    }

    fn start(&mut self, counters: CounterSet) {
        self.counting = self.counting.or(counters);
        if self.runs {
            self.change(GLOBAL_CONTROL, 0, counters.0);
        }
    }

    fn stop(&mut self, counters: CounterSet) {
        self.counting = self.counting.without(counters);
        self.change(GLOBAL_CONTROL, counters.0, 0);
    }

    fn read(&mut self, counter: Counter) -> u64 {
        let register = match counter.fixed_number() {
            Some(number) => FIXED_COUNTER + u32::from(number),
            None => COUNTER + u32::from(counter.index()),
        };
        self.msrs.read(register) & self.description.width.mask()
    }

    fn write(&mut self, counter: Counter, value: u64) {
        let value = value & self.description.width.mask();
        match counter.fixed_number() {
            Some(number) => self.msrs.write(FIXED_COUNTER + u32::from(number), value),
            None => self.msrs.write(FULL_WIDTH_COUNTER + u32::from(counter.index()), value),
        }
    }

    fn take_overflows(&mut self, of: CounterSet) -> CounterSet {
        let taken = self.msrs.read(GLOBAL_STATUS) & of.0;
        if taken != 0 {
            self.msrs.write(GLOBAL_CLEAR, taken);
        }
        CounterSet(taken)
    }
}
