// SPDX-License-Identifier: MIT OR Apache-2.0
//! Widths, sets, and counters that follow from time.

use proptest::prelude::*;

use crate::event::{Modes, Shape, select};
use crate::soft::{COUNTERS, Soft};
use crate::{Backend, Counter, CounterSet, Event, What, Width};

proptest! {
    #[test]
    fn a_counter_overflows_when_it_has_counted_what_was_left(bits in 1u8..=63, value: u64, more in 0u64..=1 << 62) {
        let width = Width::of_bits(bits);
        let value = value & width.mask();
        let left = width.until_overflow(value);
        prop_assert!(!width.advance(value, left - 1).1);
        prop_assert_eq!(width.advance(value, left), (0, true));
        let (after, has_overflowed) = width.advance(value, more);
        prop_assert_eq!(u128::from(after), (u128::from(value) + u128::from(more)) & u128::from(width.mask()));
        prop_assert_eq!(has_overflowed, more >= left);
    }

    #[test]
    fn a_select_decodes_as_encoded(number in 0u16..0x1000, unit: u8, modes in 0u64..4, edge: bool, invert: bool, threshold: u8) {
        let what = What::Vendor { select: number, unit };
        let event = Event { what, modes: Modes::from_bits(modes), shape: Shape { edge, invert, threshold } };
        let bits = select::encode(&event, number, unit);
        prop_assert_eq!(select::number(bits), (number, unit));
        prop_assert_eq!(select::event(bits, what), event);
    }

    /// For every history, a counter reads as the value written plus the time for which it counted since.
    #[test]
    fn time_is_counted_exactly(steps in proptest::collection::vec((0u8..5, 0u8..COUNTERS as u8, any::<u64>()), 1..200)) {
        let mut soft = Soft::new(0);
        let (mut now, mut values, mut counting) = (0u64, [0u64; COUNTERS], [false; COUNTERS]);
        let mut overflowed = CounterSet::EMPTY;
        for (step, at, number) in steps {
            let counter = Counter::general(at);
            match step {
                0 => soft.start(CounterSet::only(counter)),
                1 => soft.stop(CounterSet::only(counter)),
                2 => soft.write(counter, number),
                _ => {}
            }
            match step {
                0 => counting[usize::from(at)] = true,
                1 => counting[usize::from(at)] = false,
                2 => values[usize::from(at)] = number & Width::USUAL.mask(),
                3 => {
                    let more = number >> 18;
                    now += more;
                    soft.run_until(now);
                    for at in 0..COUNTERS {
                        let (value, has_overflowed) = Width::USUAL.advance(values[at], if counting[at] { more } else { 0 });
                        values[at] = value;
                        if has_overflowed {
                            overflowed = overflowed.or(CounterSet::only(Counter::general(at as u8)));
                        }
                    }
                    prop_assert_eq!(soft.take_overflows(soft.counters()), core::mem::take(&mut overflowed));
                }
                _ => prop_assert_eq!(soft.read(counter), values[usize::from(at)]),
            }
            let nearest = (0..COUNTERS).filter(|&at| counting[at]).map(|at| Width::USUAL.until_overflow(values[at])).min();
            prop_assert_eq!(soft.ticks_to_overflow(), nearest);
        }
    }
}

#[test]
fn what_does_not_follow_from_time_is_not_counted() {
    let soft = Soft::new(0);
    assert!(!soft.able(&Event::of(What::Cycles)).is_empty());
    assert!(!soft.able(&Event::of(What::ReferenceCycles)).is_empty());
    for what in [What::Instructions, What::Vendor { select: 0x2e, unit: 0x41 }] {
        assert!(soft.able(&Event::of(what)).is_empty(), "{what:?}");
    }
    for modes in [0, 1, 2] {
        let event = Event { modes: Modes::from_bits(modes), ..Event::of(What::Cycles) };
        assert!(soft.able(&event).is_empty(), "in modes {modes:#b} only");
    }
    let shape = Shape { threshold: 1, ..Shape::default() };
    assert!(soft.able(&Event { shape, ..Event::of(What::Cycles) }).is_empty());
}

#[test]
fn a_set_is_walked_from_its_lowest_counter() {
    let set = CounterSet::first(3, 2);
    let indices: std::vec::Vec<u8> = set.map(Counter::index).collect();
    assert_eq!(indices, [0, 1, 2, 32, 33]);
    assert_eq!(Counter::fixed(1).fixed_number(), Some(1));
    assert_eq!(Counter::general(1).fixed_number(), None);
}
