// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function that storms is stopped, for any behaviour of others; one that is refused now and then is not.

use std::collections::BTreeMap;
use std::vec::Vec;

use pci::Bdf;
use proptest::prelude::*;

use super::{LIMIT, MAX_STORMING, PER_POLL, QUICK_POLL_US, Storm, Storms};

/// A clock of microseconds.
const SECOND: u64 = 1_000_000;
/// The hypervisor's poll interval while nothing is found.
const SLOW_POLL_US: u64 = 250_000;
/// Requests that the hypervisor takes from a unit at a time.
const MOST_AT_A_TIME: u64 = 64;

fn source(requester: u16) -> Bdf {
    Bdf::of_requester(0, requester)
}

/// A unit's log, and functions that are refused at some rate each.
struct Polled {
    storms: Storms,
    /// By requester: requests in a second.
    rates: BTreeMap<u16, u64>,
    /// Events for which the log has room.
    room: u64,
    now: u64,
    last: u64,
}

impl Polled {
    fn new(rates: impl IntoIterator<Item = (u16, u64)>, room: u64) -> Self {
        Self { storms: Storms::new(SECOND), rates: rates.into_iter().collect(), room, now: 0, last: 0 }
    }

    /// Polls once; returns what is to be stopped.
    fn poll(&mut self) -> Vec<Storm> {
        let made = |rate: u64| self.now * rate / SECOND - self.last * rate / SECOND;
        let all: u64 = self.rates.values().map(|rate| made(*rate)).sum();
        let taken = all.min(self.room).min(MOST_AT_A_TIME);
        for (requester, rate) in self.rates.clone() {
            // The log has of each as much as it had a part in all.
            let found = if all == 0 { 0 } else { (made(rate) * taken).div_ceil(all) };
            (0..found).for_each(|_| self.storms.note(source(requester), self.now));
        }
        self.last = self.now;
        self.now += if taken > 0 { QUICK_POLL_US } else { SLOW_POLL_US };
        self.storms.end_poll(self.last).into_iter().collect()
    }

    /// Polls for this time; returns the first storm of each function, and when it was found.
    fn run(&mut self, us: u64) -> BTreeMap<u16, u64> {
        let mut stopped = BTreeMap::new();
        while self.now < us {
            for storm in self.poll() {
                let requester = storm.source.requester();
                self.rates.remove(&requester);
                stopped.entry(requester).or_insert(self.last);
            }
        }
        stopped
    }
}

#[test]
fn a_storm_is_stopped_within_a_second_whatever_the_log_has_room_for() {
    for room in [1, 8, 512] {
        for rate in [500, 1_000, 100_000, 10_000_000] {
            let stopped = Polled::new([(8, rate)], room).run(2 * SECOND);
            assert!(stopped.get(&8).is_some_and(|at| *at < SECOND), "{rate} a second, {room} records: {stopped:?}");
        }
    }
}

#[test]
fn a_hundred_thousand_a_second_are_stopped_at_once_where_the_log_has_room() {
    let mut polled = Polled::new([(8, 100_000)], 512);
    let stopped = polled.run(SECOND);
    assert!(stopped[&8] < SLOW_POLL_US + 40_000, "{stopped:?}");
}

#[test]
fn a_storm_is_described_and_begins_again() {
    let mut storms = Storms::new(SECOND);
    let mut poll = |number: u64| {
        let now = 1_000 + number * QUICK_POLL_US;
        (0..64).for_each(|_| storms.note(source(8), now));
        storms.end_poll(now).into_iter().collect::<Vec<_>>()
    };
    // One more than without what drains off meanwhile.
    (0..16).for_each(|number| assert_eq!(poll(number), []));
    assert_eq!(poll(16), [Storm { source: source(8), refused: 17 * 64, ticks: 16 * QUICK_POLL_US }]);
    assert_eq!(poll(17), []);
}

/// Polls that find one request each, `apart_us` microseconds apart.
fn stops_by_polls(apart_us: u64) -> bool {
    let mut storms = Storms::new(SECOND);
    (0..1_000).any(|poll| {
        storms.note(source(8), poll * apart_us);
        !storms.end_poll(poll * apart_us).is_empty()
    })
}

#[test]
fn a_storm_is_stopped_by_polls_that_come_late_too() {
    assert!(stops_by_polls(QUICK_POLL_US));
    assert!(stops_by_polls(10 * QUICK_POLL_US), "the CPU was busy");
}

#[test]
fn bursts_now_and_then_stop_nothing() {
    let mut storms = Storms::new(SECOND);
    for second in 0..20 {
        for poll in 0..15_000 / QUICK_POLL_US {
            let now = 5 * second * SECOND + poll * QUICK_POLL_US;
            (0..64).for_each(|_| storms.note(source(8), now));
            assert_eq!(storms.end_poll(now).len(), 0, "burst {second}");
        }
        // The next poll finds nothing: from here on all time counts.
        assert_eq!(storms.end_poll(5 * second * SECOND + 20_000).len(), 0);
    }
}

proptest! {
    #[test]
    fn who_is_refused_now_and_then_is_never_stopped(
        quiet in 1u64..=60,
        stormy in prop::collection::vec(1_000u64..1_000_000, 0..3),
    ) {
        let stormy = (9..).zip(stormy);
        let mut polled = Polled::new(stormy.chain([(8, quiet)]), 512);
        let stopped = polled.run(20 * SECOND);
        prop_assert!(!stopped.contains_key(&8), "{stopped:?}");
        prop_assert_eq!(polled.rates.len(), 1, "the others are");
    }

    #[test]
    fn any_requests_at_any_times_end_in_order(
        requests in prop::collection::vec((0u16..64, 0u64..10_000, any::<bool>()), 0..2_000),
        ticks_per_second in any::<u64>(),
    ) {
        let mut storms = Storms::new(ticks_per_second);
        let mut now = 0;
        for (requester, pause, is_last) in requests {
            now += pause;
            storms.note(source(requester), now);
            prop_assert!(storms.buckets.len() <= MAX_STORMING);
            if is_last {
                for storm in storms.end_poll(now) {
                    prop_assert!(storm.refused >= u64::from(LIMIT) && storm.ticks <= now);
                }
                prop_assert!(storms.buckets.iter().all(|bucket| bucket.level < LIMIT && bucket.added == 0));
            }
            prop_assert!(storms.buckets.iter().all(|bucket| bucket.added <= PER_POLL));
        }
    }
}
