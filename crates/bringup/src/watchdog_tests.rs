// SPDX-License-Identifier: MIT OR Apache-2.0
//! An HPET as words in memory, with its counter where the test puts it.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;

struct Hpet {
    words: RefCell<BTreeMap<u32, u32>>,
    writes: RefCell<Vec<(u32, u32)>>,
}

/// 10 ns, as QEMU's.
const PERIOD_FEMTOSECONDS: u32 = 10_000_000;

impl Hpet {
    /// An HPET with timers that can be wired to these inputs.
    fn new(routes: &[u32]) -> Self {
        let last = routes.len() as u32 - 1;
        let mut words = BTreeMap::from([(CAPABILITIES, last << 8), (PERIOD, PERIOD_FEMTOSECONDS)]);
        for (timer, routes) in routes.iter().enumerate() {
            words.insert(of(timer as u32) + TIMER_ROUTES, *routes);
        }
        Self { words: words.into(), writes: RefCell::default() }
    }

    fn with(self, offset: u32, value: u32) -> Self {
        self.words.borrow_mut().insert(offset, value);
        self
    }
}

impl Registers for Hpet {
    fn read(&self, offset: u32) -> u32 {
        self.words.borrow().get(&offset).copied().unwrap_or(0)
    }

    fn write(&self, offset: u32, value: u32) {
        self.words.borrow_mut().insert(offset, value);
        self.writes.borrow_mut().push((offset, value));
    }
}

/// Timer and input.
fn choice(hpet: &Hpet, is_free: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
    Watchdog::choose(hpet, is_free).map(|dog| (dog.timer, dog.input))
}

#[test]
fn the_last_timer_and_the_last_unused_input_are_taken() {
    let hpet = Hpet::new(&[0x00ff_0104, 0x00ff_0104, 0x00ff_0104]);
    assert_eq!(choice(&hpet, |_| true), Some((2, 23)));
    assert_eq!(choice(&hpet, |input| input < 22), Some((2, 21)));
    let hpet = Hpet::new(&[0x0010_0000, 0x0000_0104]);
    assert_eq!(choice(&hpet, |_| true), Some((0, 20)));
}

#[test]
fn inputs_of_isa_devices_are_left_alone() {
    assert_eq!(choice(&Hpet::new(&[0x0104, 0xffff]), |_| true), None);
}

#[test]
fn timers_that_stand_in_for_pit_and_rtc_are_left_alone() {
    let routes = [0x0080_0000, 0x0080_0000];
    let hpet = |timers| Hpet::new(&routes[..timers]).with(CONFIGURATION, LEGACY_ROUTES);
    assert_eq!(choice(&hpet(2), |_| true), None);
    let three = Hpet::new(&[routes[0], routes[0], routes[0]]).with(CONFIGURATION, LEGACY_ROUTES);
    assert_eq!(choice(&three, |_| true), Some((2, 23)));
}

#[test]
fn an_impossible_period_means_no_hpet() {
    for period in [0, LONGEST_PERIOD_FEMTOSECONDS + 1, u32::MAX] {
        assert_eq!(choice(&Hpet::new(&[0x0080_0000]).with(PERIOD, period), |_| true), None);
    }
}

#[test]
fn it_fires_once_at_its_time_and_interrupts_only_when_that_is_set() {
    let at = of(1);
    let hpet =
        Hpet::new(&[0, 0x0080_0000]).with(COUNTER, u32::MAX - 9).with(at, LEVEL | PERIODIC | BY_MESSAGE | 1 << 9);
    let dog = Watchdog::choose(&hpet, |_| true).expect("one");
    dog.arm(&hpet, 5_000);
    assert_eq!(hpet.read(at), IS_32_BIT | 23 << 9 | INTERRUPTS);
    assert_eq!(hpet.read(at + TIMER_COMPARATOR), 500_000 - 10, "the counter's low half goes round");
    assert_eq!(hpet.read(CONFIGURATION) & COUNTS, COUNTS);
    let order: Vec<u32> = hpet.writes.borrow().iter().map(|(offset, _)| *offset).collect();
    assert_eq!(order, [CONFIGURATION, at, at + TIMER_COMPARATOR, at]);
    assert_eq!(hpet.writes.borrow()[1].1 & INTERRUPTS, 0, "not before its comparator is set");
    dog.disarm(&hpet);
    assert_eq!(hpet.read(at) & INTERRUPTS, 0);
}

#[test]
fn a_time_that_is_too_short_or_too_long_is_bounded() {
    let hpet = Hpet::new(&[0x0080_0000]);
    let dog = Watchdog::choose(&hpet, |_| true).expect("one");
    for (us, ticks) in [(0, LEAST_TICKS), (u64::MAX, MOST_TICKS)] {
        dog.arm(&hpet, us);
        assert_eq!(u64::from(hpet.read(of(0) + TIMER_COMPARATOR)), ticks);
    }
}

#[test]
fn an_image_that_takes_over_silences_whatever_was_armed() {
    let hpet = Hpet::new(&[0x0080_0000; 3]).with(of(0), INTERRUPTS | PERIODIC).with(of(2), INTERRUPTS);
    disable_all(&hpet);
    assert!((0..3).all(|timer| hpet.read(of(timer)) & INTERRUPTS == 0));
    assert_eq!(hpet.read(of(0)), PERIODIC, "nothing else changes");
}
