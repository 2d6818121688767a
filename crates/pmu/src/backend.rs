// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's counters as the rest of the crate uses them.

use crate::vendor::Vendor;
use crate::{Counter, CounterSet, Event, Width};

/// A CPU's counters, for the user that has its turn. A counter that is not named in a call stays as it is.
pub trait Backend {
    /// Returns whether the counters are this user's alone, also while it is another's turn: nothing need be saved at a
    /// switch.
    #[inline(always)]
    fn is_private(&self) -> bool {
        false
    }

    /// Returns the vendor whose numbers it knows for events that only one vendor has; none: it counts no such events.
    fn vendor(&self) -> Option<Vendor> {
        None
    }

    /// The counters that there are.
    fn counters(&self) -> CounterSet;
    /// Their width.
    fn width(&self) -> Width;
    /// Those of them that can count this; none: this CPU cannot count it.
    fn able(&self, event: &Event) -> CounterSet;
    /// Those of them that can count it for this slot of the user's.
    #[inline(always)]
    fn able_for(&self, _slot: usize, event: &Event) -> CounterSet {
        self.able(event)
    }
    /// Gives a stopped counter its event and value. An overflow is to interrupt.
    fn program(&mut self, counter: Counter, event: &Event, value: u64);
    /// Takes its event from a stopped counter; nothing of its user is left in it.
    fn clear(&mut self, counter: Counter);
    /// Lets programmed counters count.
    fn start(&mut self, counters: CounterSet);
    /// Stops them.
    fn stop(&mut self, counters: CounterSet);
    /// A counter's value.
    fn read(&mut self, counter: Counter) -> u64;
    /// Sets it.
    fn write(&mut self, counter: Counter, value: u64);
    /// Returns which of these have overflowed since this was last asked.
    fn take_overflows(&mut self, of: CounterSet) -> CounterSet;

    /// For counters that are only checked: the user has run for so many ticks of the time stamp counter in all.
    #[inline]
    fn run_until(&mut self, _ticks: u64) {}

    /// Both of the above at once: the user has run for so many ticks, and by then these have overflowed.
    #[inline(always)]
    fn overflows_until(&mut self, ticks: u64, of: CounterSet) -> CounterSet {
        self.run_until(ticks);
        self.take_overflows(of)
    }

    /// After how many ticks of the user's time a counter overflows, where it does not interrupt by itself.
    #[inline]
    fn ticks_to_overflow(&self) -> Option<u64> {
        None
    }
}

/// Model-specific registers of the CPU, or of a model of one.
pub trait Msrs {
    /// RDMSR; the register exists.
    fn read(&mut self, number: u32) -> u64;
    /// WRMSR; register and value are as the manual has them.
    fn write(&mut self, number: u32, value: u64);
}

impl<T: Msrs> Msrs for &mut T {
    fn read(&mut self, number: u32) -> u64 {
        (**self).read(number)
    }

    fn write(&mut self, number: u32, value: u64) {
        (**self).write(number, value);
    }
}
