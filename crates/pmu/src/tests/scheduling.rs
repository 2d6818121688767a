// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assignment of events to counters.

use proptest::prelude::*;

use crate::schedule::{Rotation, assign};
use crate::{Counter, CounterSet};

const EVENTS: usize = 6;

/// The most events that can have a counter at once, by trying everything.
fn most(able: &[CounterSet], available: CounterSet) -> usize {
    let Some((first, rest)) = able.split_first() else { return 0 };
    let without = most(rest, available);
    let with = first.and(available).map(|counter| 1 + most(rest, available.without(CounterSet::only(counter)))).max();
    with.unwrap_or(0).max(without)
}

proptest! {
    #[test]
    fn as_many_events_as_possible_are_counted_each_where_it_can_be(able in proptest::array::uniform6(0u64..32), available in 0u64..32) {
        let (able, available) = (able.map(CounterSet), CounterSet(available));
        let given = assign(&able, available);
        prop_assert_eq!(given.iter().flatten().count(), most(&able, available));
        for (event, counter) in given.iter().enumerate() {
            let Some(counter) = counter else { continue };
            prop_assert!(able[event].and(available).contains(*counter));
            prop_assert_eq!(given.iter().filter(|other| **other == Some(*counter)).count(), 1);
        }
    }

    #[test]
    fn an_earlier_event_is_never_left_out_for_a_later_one(able in proptest::array::uniform6(0u64..32)) {
        let able = able.map(CounterSet);
        for count in 1..EVENTS {
            let mut fewer = [CounterSet::EMPTY; EVENTS];
            fewer[..count].copy_from_slice(&able[..count]);
            let before = assign(&fewer, CounterSet(!0));
            let after = assign(&able, CounterSet(!0));
            prop_assert!((0..count).all(|event| before[event].is_none() || after[event].is_some()));
        }
    }
}

#[test]
fn an_event_that_fits_one_counter_gets_it_from_one_that_fits_two() {
    let given = assign(&[CounterSet(0b11), CounterSet(0b01)], CounterSet(!0));
    assert_eq!(given, [Some(Counter::general(1)), Some(Counter::general(0))]);
}

#[test]
fn where_there_are_too_few_counters_each_event_has_its_turn() {
    let able = [CounterSet(0b11); EVENTS];
    let mut rotation = Rotation::default();
    let mut turns = [0; EVENTS];
    for _ in 0..EVENTS {
        let given = rotation.assign(&able, CounterSet(!0));
        (0..EVENTS).filter(|&event| given[event].is_some()).for_each(|event| turns[event] += 1);
        rotation.advance(EVENTS);
    }
    assert_eq!(turns, [2; EVENTS]);
}
