// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedule of events on counters, where not every counter can count every event; and their turns where there are more
//! events than counters.

use crate::{Counter, CounterSet};

/// Gives as many events as possible a counter each: a largest matching, found by augmenting paths. `able` has the
/// counters that may count each event, empty for no event. An event that comes earlier is never left out for a later
/// one.
pub fn assign<const N: usize>(able: &[CounterSet; N], available: CounterSet) -> [Option<Counter>; N] {
    let mut given = [None; N];
    for event in 0..N {
        place(event, able, available, &mut CounterSet::EMPTY.clone(), &mut given);
    }
    given
}

/// Finds a counter for an event: a free one, or one whose event can go elsewhere. Each counter is checked once, so
/// that the recursion is no deeper than there are events.
fn place<const N: usize>(
    event: usize,
    able: &[CounterSet; N],
    available: CounterSet,
    seen: &mut CounterSet,
    given: &mut [Option<Counter>; N],
) -> bool {
    for counter in able[event].and(available) {
        if seen.contains(counter) {
            continue;
        }
        *seen = seen.or(CounterSet::only(counter));
        let holder = given.iter().position(|its| *its == Some(counter));
        if holder.is_none_or(|holder| place(holder, able, available, seen, given)) {
            given[event] = Some(counter);
            return true;
        }
    }
    false
}

/// Turns of events where there are more of them than counters: events take turns at being first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rotation {
    first: usize,
}

impl Rotation {
    /// The next turn.
    pub fn advance(&mut self, events: usize) {
        self.first = if events == 0 { 0 } else { (self.first + 1) % events };
    }

    /// [`assign`], with the turn's first event before all others.
    pub fn assign<const N: usize>(self, able: &[CounterSet; N], available: CounterSet) -> [Option<Counter>; N] {
        let first = if N == 0 { 0 } else { self.first % N };
        let mut turned = *able;
        turned.rotate_left(first);
        let mut given = assign(&turned, available);
        given.rotate_right(first);
        given
    }
}
