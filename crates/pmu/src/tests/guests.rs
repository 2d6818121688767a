// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of a guest's registers.

use proptest::prelude::*;

use super::{AMD_CYCLES, FULL, INTEL_CYCLES, config, guest};
use crate::guest::{Config, Filter, Refused, State, Vendor, VirtualPmu};
use crate::soft::Soft;
use crate::{CounterSet, Policy};

const SELECT: u32 = 0x186;
const SHORT: u32 = 0xc1;
const WHOLE: u32 = 0x4c1;
const FIXED: u32 = 0x309;
const FIXED_CONTROL: u32 = 0x38d;
const STATUS: u32 = 0x38e;
const CONTROL: u32 = 0x38f;
const CLEAR: u32 = 0x390;
const DEBUG_CONTROL: u32 = 0x1d9;

fn intel() -> VirtualPmu<Soft> {
    guest(Vendor::Intel, Policy::Direct)
}

fn amd() -> VirtualPmu<Soft> {
    guest(Vendor::Amd, Policy::Direct)
}

#[test]
fn counters_that_do_not_exist_are_refused() {
    let mut guest = intel();
    for number in [SELECT + 8, SHORT + 8, WHOLE + 8, FIXED + 3, 0x391, 0xc001_0000, 0xc001_0200, 0xc000_0301] {
        assert_eq!(guest.read(number, 0), Err(Refused), "{number:#x}");
        assert_eq!(guest.write(number, 0, 0), Err(Refused), "{number:#x}");
    }
    for counter in [8, 1 << 30 | 3, 1 << 31, u32::MAX] {
        assert_eq!(guest.read_counter(counter, 0), Err(Refused), "{counter:#x}");
    }
    let mut guest = amd();
    for number in [0xc001_020c, 0xc001_0008, 0xc000_0304, SELECT, FIXED_CONTROL, DEBUG_CONTROL] {
        assert_eq!(guest.read(number, 0), Err(Refused), "{number:#x}");
        assert_eq!(guest.write(number, 0, 0), Err(Refused), "{number:#x}");
    }
    assert_eq!(guest.read_counter(6, 0), Err(Refused));
}

#[test]
fn intels_reserved_bits_are_refused_and_change_nothing() {
    let mut guest = intel();
    let reserved = [
        (SELECT, 1 << 21),
        (SELECT, 1 << 32),
        (WHOLE, 1 << 48),
        (FIXED, 1 << 48),
        (FIXED_CONTROL, 1 << 2),
        (FIXED_CONTROL, 1 << 12),
        (CONTROL, 1 << 8),
        (CONTROL, 1 << 35),
        (CLEAR, 1 << 62),
        (DEBUG_CONTROL, 1),
        (STATUS, 0),
        (0x345, 0),
    ];
    for (number, value) in reserved {
        let before = guest.read(number, 0);
        assert_eq!(guest.write(number, value, 0), Err(Refused), "{number:#x} {value:#x}");
        assert_eq!(guest.read(number, 0), before);
    }
}

#[test]
fn amds_reserved_bits_read_as_zero() {
    let mut guest = amd();
    guest.write(0xc001_0200, u64::MAX, 0).expect("taken");
    assert_eq!(guest.read(0xc001_0200, 0), Ok(0xf_ffd7_ffff));
    guest.write(0xc000_0301, u64::MAX, 0).expect("taken");
    assert_eq!(guest.read(0xc000_0301, 0), Ok(0x3f));
    guest.write(0xc000_0300, u64::MAX, 0).expect("ignored");
    assert_eq!(guest.read(0xc000_0300, 0), Ok(0));
}

#[test]
fn amds_older_registers_are_the_first_four_counters() {
    let mut guest = amd();
    guest.write(0xc001_0003, AMD_CYCLES, 0).expect("a select");
    assert_eq!(guest.read(0xc001_0206, 0), Ok(AMD_CYCLES));
    assert_eq!(guest.read(0xc001_0007, 500), Ok(500));
    assert_eq!(guest.read(0xc001_0207, 600), Ok(600));
    assert_eq!(guest.read_counter(3, 700), Ok(700));
}

#[test]
fn intels_short_writes_are_sign_extended_and_whole_ones_are_not() {
    let mut guest = intel();
    guest.write(SHORT, 0x8000_0001, 0).expect("a counter");
    assert_eq!(guest.read(SHORT, 0), Ok(FULL & 0xffff_ffff_8000_0001));
    guest.write(SHORT, 0xff_0000_0005, 0).expect("a counter");
    assert_eq!(guest.read(WHOLE, 0), Ok(5), "the upper half is not checked");
    guest.write(WHOLE, 0x1234_8000_0001, 0).expect("a counter");
    assert_eq!((guest.read(SHORT, 0), guest.read_counter(0, 0)), (Ok(0x1234_8000_0001), Ok(0x1234_8000_0001)));
}

#[test]
fn a_counter_counts_while_its_select_and_the_global_control_let_it() {
    let mut guest = intel();
    guest.write(SELECT, INTEL_CYCLES, 0).expect("a select");
    assert_eq!(guest.read(SHORT, 100), Ok(100), "general counters are let from the start");
    guest.write(CONTROL, 0, 100).expect("none");
    assert_eq!(guest.read(SHORT, 300), Ok(100));
    guest.write(CONTROL, 1, 300).expect("the first");
    guest.write(SELECT, INTEL_CYCLES & !(1 << 22), 350).expect("a select");
    assert_eq!(guest.read(SHORT, 400), Ok(150));
    assert!(!guest.is_counting());
}

#[test]
fn fixed_counters_follow_their_control() {
    let mut guest = intel();
    guest.write(CONTROL, 0b111 << 32, 0).expect("fixed ones");
    guest.write(FIXED_CONTROL, 0x330, 0).expect("cycles and reference cycles");
    assert_eq!(guest.read(FIXED + 1, 70), Ok(70));
    assert_eq!(guest.read_counter(1 << 30 | 2, 80), Ok(80));
    guest.write(FIXED_CONTROL, 0x333, 80).expect("instructions too");
    assert_eq!(guest.read(FIXED, 90), Ok(0), "instructions cannot be counted: they stand still");
}

#[test]
fn an_overflow_is_reported_and_interrupts_once_where_it_is_wanted() {
    let mut guest = intel();
    guest.write(CONTROL, 0b11, 0).expect("two");
    guest.write(WHOLE, FULL - 99, 0).expect("near");
    guest.write(SELECT, INTEL_CYCLES, 0).expect("with interrupt");
    assert_eq!(guest.ticks_to_overflow(), Some(100));
    guest.run_until(99);
    assert!(!guest.take_interrupt());
    guest.run_until(100);
    assert!(guest.take_interrupt() && !guest.take_interrupt());
    assert_eq!((guest.read(STATUS, 120), guest.read(SHORT, 120)), (Ok(1), Ok(20)));
    guest.write(CLEAR, 1, 120).expect("cleared");
    assert_eq!(guest.read(STATUS, 120), Ok(0));
    guest.write(WHOLE + 1, FULL, 120).expect("near");
    guest.write(SELECT + 1, INTEL_CYCLES & !(1 << 20), 120).expect("without interrupt");
    assert_eq!(guest.read(STATUS, 130), Ok(2));
    assert!(!guest.take_interrupt());
}

#[test]
fn the_first_overflow_freezes_all_where_that_is_wanted() {
    let mut guest = intel();
    guest.write(DEBUG_CONTROL, 1 << 12, 0).expect("freeze");
    guest.write(CONTROL, 0b11, 0).expect("two");
    guest.write(WHOLE, FULL, 0).expect("near");
    guest.write(SELECT, INTEL_CYCLES, 0).expect("with interrupt");
    guest.write(SELECT + 1, INTEL_CYCLES, 0).expect("another");
    guest.run_until(1);
    assert!(guest.take_interrupt());
    assert_eq!(guest.read(CONTROL, 10), Ok(0));
    assert_eq!(guest.read(SHORT + 1, 1000), Ok(1));
}

#[test]
fn what_a_filter_does_not_name_stands_still() {
    let mut filter = Filter::NONE;
    (0..=Filter::MOST).for_each(|_| filter.allow(0x3c, 0));
    assert!(!filter.allows((0xc0, 0)), "the list is full, and yet a list");
    let config = Config { filter, ..config(Vendor::Intel, Policy::Direct) };
    let mut guest = VirtualPmu::new(&config, Soft::new(0));
    guest.switch_in(CounterSet(!0), 0);
    guest.write(CONTROL, 1 | 0b111 << 32, 0).expect("all");
    guest.write(SELECT, INTEL_CYCLES, 0).expect("cycles");
    guest.write(FIXED_CONTROL, 0x330, 0).expect("fixed");
    assert_eq!([SHORT, FIXED + 1, FIXED + 2].map(|number| guest.read(number, 50)), [Ok(50), Ok(50), Ok(0)]);
}

/// Registers of either vendor, and some of neither.
fn any_register() -> impl Strategy<Value = u32> {
    prop_oneof![
        0xc0u32..0xca,
        0x185u32..0x190,
        0x308u32..0x30d,
        0x38cu32..0x393,
        0x4c0u32..0x4ca,
        Just(DEBUG_CONTROL),
        0xc001_0000u32..0xc001_0009,
        0xc001_0200u32..0xc001_020e,
        0xc000_02ffu32..0xc000_0305,
        any::<u32>()
    ]
}

fn any_value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        Just(INTEL_CYCLES),
        Just(AMD_CYCLES),
        0u64..16,
        (0u32..64).prop_map(|bit| 1 << bit),
        (0u64..5000).prop_map(|left| FULL - left)
    ]
}

proptest! {
    /// Whatever a guest does: nothing panics, and what it was answered it can be restored to.
    #[test]
    fn every_state_that_a_guest_can_reach_is_restored(
        is_intel: bool,
        accesses in proptest::collection::vec((any_register(), any_value(), 0u64..10_000), 1..60),
    ) {
        let vendor = if is_intel { Vendor::Intel } else { Vendor::Amd };
        let mut guest = guest(vendor, Policy::Direct);
        let mut ticks = 0;
        for (number, value, more) in accesses {
            ticks += more;
            let _ = guest.write(number, value, ticks);
            let _ = (guest.read(number, ticks), guest.read_counter(value as u32, ticks));
        }
        guest.run_until(ticks);
        let state = guest.state(ticks);
        let config = config(vendor, Policy::Direct);
        let mut restored = VirtualPmu::from_state(&config, Soft::new(7), &state).expect("it was reached");
        prop_assert_eq!(restored.state(7), state);
        restored.switch_in(CounterSet(0xfff), 7);
        prop_assert_eq!(restored.ticks_to_overflow(), guest.ticks_to_overflow());
        for counter in 0..8 {
            prop_assert_eq!(restored.read_counter(counter, 1007), guest.read_counter(counter, ticks + 1000));
        }
    }

    #[test]
    fn a_state_that_no_guest_can_reach_is_refused_and_nothing_panics(is_intel: bool, at in 0usize..24, value: u64) {
        let mut state = State { global_control: 0x3f, ..State::default() };
        match at {
            0..8 => state.selects[at] = value,
            8..20 => state.values[at - 8] = value,
            20 => state.fixed_control = value,
            21 => state.global_control = value,
            22 => state.global_status = value,
            _ => state.debug_control = value,
        }
        let config = config(if is_intel { Vendor::Intel } else { Vendor::Amd }, Policy::Direct);
        if let Ok(restored) = VirtualPmu::from_state(&config, Soft::new(0), &state) {
            prop_assert_eq!(restored.state(0), state);
        }
    }
}
