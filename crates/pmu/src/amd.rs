// SPDX-License-Identifier: MIT OR Apache-2.0
//! AMD's core counters (AMD APM vol. 2, section 13.2): the four that every CPU has, the six of the extension, and
//! with version 2 of its performance monitoring global registers.
//!
//! Without these a counter that has overflowed is recognised by its highest bit: it is clear, where the value that was
//! put in had it set. So an overflow of a counter that started below the middle is not seen there; no user asks for one
//! so far away.

mod description;
pub mod number;
mod probe;
mod unusable;

use crate::event::{What, select};
use crate::vendor::Vendor;
use crate::{Backend, Counter, CounterSet, Event, Msrs, Width};

use number::*;

pub use description::{
    CYCLES, Description, EXTENDED_COUNTERS, GUEST_ONLY, HOST_ONLY, INSTRUCTIONS, LEGACY_COUNTERS, REFERENCE_CYCLES,
};
pub use probe::probe;
pub use unusable::Unusable;

const HIGHEST_BIT: u64 = 1 << 47;

/// The modes whose time is counted: SVM lets the CPU report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A guest's.
    Guest,
    /// The host's.
    Host,
}

/// The counters of one CPU, as one of their users reaches them; the global registers are shared with the others.
#[derive(Clone, Debug)]
pub struct Amd<M> {
    msrs: M,
    description: Description,
    side: u64,
    /// Selects as they are to be while they count.
    selects: [u64; 16],
    /// Counters that count for this user.
    counting: u64,
    /// Counters whose highest bit was set when they were last checked.
    near_overflow: u64,
}

impl<M: Copy> Amd<M> {
    /// The same counters for another user.
    pub const fn others(&self) -> Self {
        Self { selects: [0; 16], counting: 0, near_overflow: 0, ..*self }
    }
}

impl<M: Msrs> Amd<M> {
    /// The CPU's counters as they are.
    pub const fn new(msrs: M, description: Description, side: Side) -> Self {
        let side = match side {
            Side::Guest => GUEST_ONLY,
            Side::Host => HOST_ONLY,
        };
        Self { msrs, description, side, selects: [0; 16], counting: 0, near_overflow: 0 }
    }

    /// Before they have a user: all stopped and without events, whatever firmware has left.
    pub fn reset(&mut self) {
        if self.description.has_global {
            self.msrs.write(GLOBAL_CONTROL, 0);
        }
        self.counters().for_each(|counter| self.clear(counter));
    }

    fn number(event: &Event) -> (u16, u8) {
        match event.what {
            What::Cycles => CYCLES,
            What::Instructions => INSTRUCTIONS,
            What::ReferenceCycles => REFERENCE_CYCLES,
            What::Vendor { select, unit } => (select, unit),
        }
    }

    fn note(&mut self, counter: Counter, value: u64) {
        let bit = CounterSet::only(counter).0;
        let is_near = value & HIGHEST_BIT != 0;
        self.near_overflow = self.near_overflow & !bit | if is_near { bit } else { 0 };
    }

    /// Those whose highest bit has fallen.
    fn fallen(&mut self, of: CounterSet) -> CounterSet {
        let before = CounterSet(self.near_overflow).and(of);
        for counter in of {
            let value = self.read(counter);
            self.note(counter, value);
        }
        before.without(CounterSet(self.near_overflow))
    }

    /// With global registers one write does it; else each select has its own enable bit.
    fn set_counting(&mut self, counting: u64) {
        let changed = self.counting ^ counting;
        if changed == 0 {
            return;
        }
        self.counting = counting;
        if self.description.has_global {
            let others = self.msrs.read(GLOBAL_CONTROL) & !changed;
            return self.msrs.write(GLOBAL_CONTROL, others | changed & counting);
        }
        for counter in CounterSet(changed) {
            let select = self.selects[usize::from(counter.index() & 0xf)];
            let counts = CounterSet(counting).contains(counter);
            let (register, bits) =
                (self.description.select(counter), if counts { select } else { select & !select::ENABLE });
            self.msrs.write(register, bits);
        }
    }
}

impl<M: Msrs> Backend for Amd<M> {
    fn vendor(&self) -> Option<Vendor> {
        Some(Vendor::Amd)
    }

    fn counters(&self) -> CounterSet {
        CounterSet::first(self.description.counters, 0)
    }

    fn width(&self) -> Width {
        Width::USUAL
    }

    fn able(&self, event: &Event) -> CounterSet {
        let is_missing = event.what == What::ReferenceCycles && !self.description.counts_reference;
        if is_missing || event.modes.is_empty() { CounterSet::EMPTY } else { self.counters() }
    }

    fn program(&mut self, counter: Counter, event: &Event, value: u64) {
        let (number, unit) = Self::number(event);
        let bits = select::encode(event, number, unit) | select::ENABLE | select::INTERRUPT | self.side;
        self.selects[usize::from(counter.index() & 0xf)] = bits;
        self.write(counter, value);
        let register = self.description.select(counter);
        if self.description.has_global {
            self.msrs.write(GLOBAL_CLEAR, CounterSet::only(counter).0);
            self.msrs.write(register, bits);
        } else {
            self.msrs.write(register, bits & !select::ENABLE);
        }
    }

    fn clear(&mut self, counter: Counter) {
        self.selects[usize::from(counter.index() & 0xf)] = 0;
        let register = self.description.select(counter);
        self.msrs.write(register, 0);
        self.write(counter, 0);
        if self.description.has_global {
            self.msrs.write(GLOBAL_CLEAR, CounterSet::only(counter).0);
        }
    }

    fn start(&mut self, counters: CounterSet) {
        self.set_counting(self.counting | counters.0);
    }

    fn stop(&mut self, counters: CounterSet) {
        self.set_counting(self.counting & !counters.0);
    }

    fn read(&mut self, counter: Counter) -> u64 {
        let register = self.description.value(counter);
        self.msrs.read(register) & Width::USUAL.mask()
    }

    fn write(&mut self, counter: Counter, value: u64) {
        let register = self.description.value(counter);
        self.msrs.write(register, value & Width::USUAL.mask());
        self.note(counter, value);
    }

    fn take_overflows(&mut self, of: CounterSet) -> CounterSet {
        if of.is_empty() {
            return of;
        }
        if !self.description.has_global {
            return self.fallen(of);
        }
        let taken = self.msrs.read(GLOBAL_STATUS) & of.0;
        if taken != 0 {
            self.msrs.write(GLOBAL_CLEAR, taken);
        }
        CounterSet(taken)
    }
}
