// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of a change and a switch under either policy; that both count the same.

use std::vec::Vec;

use proptest::prelude::*;

use super::{AMD_CYCLES, FULL, INTEL_CYCLES, guest};
use crate::guest::{Vendor, VirtualPmu};
use crate::soft::Soft;
use crate::{CounterSet, Policy};

const SELECT: u32 = 0xc001_0200;
const COUNTER: u32 = 0xc001_0201;
const GLOBAL_CONTROL: u32 = 0xc000_0301;
const GLOBAL_STATUS: u32 = 0xc000_0300;
const ALL: CounterSet = CounterSet(0xfff);

fn toggled(policy: Policy) -> VirtualPmu<Soft> {
    let mut guest = guest(Vendor::Amd, policy);
    for round in 0..10 {
        guest.write(SELECT, AMD_CYCLES, round * 20).expect("a cycle counter");
        guest.write(SELECT, AMD_CYCLES & !(1 << 22), round * 20 + 10).expect("stopped");
    }
    assert_eq!(guest.read(COUNTER, 1000), Ok(100));
    guest
}

#[test]
fn direct_creates_an_event_once_and_reprogram_at_each_change() {
    assert_eq!(toggled(Policy::Direct).bank().work().created, 1);
    let work = toggled(Policy::Reprogram).bank().work();
    assert_eq!((work.created, work.released), (10, 10));
    assert_eq!(work.scheduled, 11, "once when it was switched in");
}

#[test]
fn a_write_that_changes_nothing_is_left_out() {
    for policy in [Policy::Direct, Policy::Reprogram] {
        let mut guest = guest(Vendor::Amd, policy);
        (0..5).for_each(|ticks| guest.write(SELECT, AMD_CYCLES, ticks).expect("a cycle counter"));
        assert_eq!(guest.bank().work().created, 1, "{policy:?}");
        assert_eq!(guest.read(COUNTER, 5), Ok(5));
    }
}

#[test]
fn an_event_that_has_not_counted_for_a_whole_turn_is_released() {
    let mut guest = guest(Vendor::Amd, Policy::Direct);
    guest.write(SELECT, AMD_CYCLES, 0).expect("a cycle counter");
    guest.write(SELECT, 0, 10).expect("stopped");
    assert!(guest.bank().is_used());
    guest.switch_out(10);
    assert!(guest.bank().is_used(), "it has counted in this turn");
    guest.switch_in(ALL, 10);
    guest.switch_out(10);
    assert!(!guest.bank().is_used());
    guest.switch_in(ALL, 10);
    assert_eq!(guest.read(COUNTER, 10), Ok(10), "its value is the guest's");
}

#[test]
fn what_counts_is_not_released_however_many_turns_go_by() {
    for policy in [Policy::Direct, Policy::Reprogram] {
        let mut guest = guest(Vendor::Amd, policy);
        guest.write(SELECT, AMD_CYCLES, 0).expect("a cycle counter");
        for turn in 1..=10 {
            guest.switch_out(turn * 10);
            guest.switch_in(ALL, turn * 10);
        }
        assert_eq!(guest.read(COUNTER, 107), Ok(107), "{policy:?}");
    }
}

/// One access of the guest's, time that it runs, or a switch.
#[derive(Clone, Debug)]
enum Step {
    Write(u32, u64),
    Run(u64),
    Switch,
}

/// Registers by vendor: selects, counters, the global control, what clears the status.
fn step(vendor: Vendor) -> BoxedStrategy<Step> {
    let (cycles, selects, counters, stride, control, clear) = match vendor {
        Vendor::Amd => (AMD_CYCLES, SELECT, COUNTER, 2, GLOBAL_CONTROL, GLOBAL_STATUS + 2),
        Vendor::Intel => (INTEL_CYCLES, 0x186, 0x4c1, 1, 0x38f, 0x390),
    };
    let select = prop_oneof![Just(cycles), Just(cycles & !(1 << 22)), Just(cycles | 1 << 24), any::<u64>()];
    let value = prop_oneof![any::<u64>(), (0u64..5000).prop_map(|left| FULL - left)];
    let usual = prop_oneof![
        (0u32..6, select).prop_map(move |(at, value)| Step::Write(selects + stride * at, value)),
        (0u32..6, value).prop_map(move |(at, value)| Step::Write(counters + stride * at, value)),
        (0u64..64).prop_map(move |value| Step::Write(control, value)),
        (0u64..64).prop_map(move |value| Step::Write(clear, value)),
        (0u64..4000).prop_map(Step::Run),
        Just(Step::Switch),
    ];
    if vendor == Vendor::Amd {
        return usual.boxed();
    }
    let global = (0u64..8, 0u64..256).prop_map(|(fixed, general)| Step::Write(0x38f, fixed << 32 | general));
    let fixed = prop_oneof![Just(0xbbb), Just(0x330), Just(0), 0u64..0x1000];
    prop_oneof![3 => usual, 1 => global, 1 => fixed.prop_map(|value| Step::Write(0x38d, value))].boxed()
}

fn readable(vendor: Vendor) -> Vec<u32> {
    match vendor {
        Vendor::Amd => (SELECT..SELECT + 12).chain(GLOBAL_STATUS..GLOBAL_STATUS + 2).collect(),
        Vendor::Intel => (0x186..0x18e).chain(0x4c1..0x4c9).chain(0x309..0x30c).chain(0x38d..0x390).collect(),
    }
}

fn steps() -> impl Strategy<Value = (Vendor, Vec<Step>)> {
    prop_oneof![Just(Vendor::Amd), Just(Vendor::Intel)]
        .prop_flat_map(|vendor| (Just(vendor), proptest::collection::vec(step(vendor), 1..100)))
}

proptest! {
    /// The baseline and the improvement are one mechanism: a guest cannot report them apart.
    #[test]
    fn both_policies_count_the_same((vendor, steps) in steps()) {
        let mut guests = [guest(vendor, Policy::Direct), guest(vendor, Policy::Reprogram)];
        let mut ticks = 0;
        for step in steps {
            match step {
                Step::Run(more) => ticks += more,
                Step::Write(number, value) => {
                    let [one, other] = guests.each_mut().map(|guest| guest.write(number, value, ticks));
                    prop_assert_eq!(one, other, "{:#x}", number);
                }
                Step::Switch => guests.iter_mut().for_each(|guest| {
                    guest.switch_out(ticks);
                    guest.switch_in(ALL, ticks);
                }),
            }
            for number in readable(vendor) {
                let [one, other] = guests.each_mut().map(|guest| guest.read(number, ticks));
                prop_assert_eq!(one, other, "{:#x}", number);
            }
            let [one, other] = guests.each_mut().map(VirtualPmu::take_interrupt);
            prop_assert_eq!(one, other);
            let [one, other] = guests.each_mut().map(|guest| guest.ticks_to_overflow());
            prop_assert_eq!(one, other);
        }
    }
}
