// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of a throttled entity.

use proptest::prelude::*;

use super::{MS, Ticks};
use crate::throttle::{Sliver, Throttle};

fn ticks(microseconds: u64) -> u64 {
    MS * microseconds / 1000
}

#[test]
fn a_throttled_entity_rests_first_and_then_runs_for_its_allowance() {
    for sliver in [Sliver::Rare, Sliver::EveryMillisecond] {
        let (window, allowance) = sliver.microseconds();
        let (window, allowance) = (ticks(window), ticks(allowance));
        let mut throttle = Throttle::new(MS, sliver, Ticks(0));
        assert_eq!(throttle.stop_at(Ticks(window / 2)), Ticks(window / 2), "nothing is left of the first window");
        assert_eq!(throttle.charge(Ticks(0)), Some(Ticks(window)));
        assert_eq!(throttle.stop_at(Ticks(window)), Ticks(window + allowance));
        assert_eq!(throttle.charge(Ticks(allowance / 4)), None, "interrupted: the rest is left to it");
        let later = window + allowance;
        assert_eq!(throttle.stop_at(Ticks(later)), Ticks(later + allowance - allowance / 4));
        assert_eq!(throttle.charge(Ticks(window)), Some(Ticks(2 * window)));
    }
}

/// It has a delay of a millisecond at a time, each beginning when it sees that the last has ended.
#[test]
fn an_entity_that_counts_milliseconds_loses_a_fifth_of_them_at_most() {
    let mut throttle = Throttle::new(MS, Sliver::EveryMillisecond, Ticks(0));
    let (mut now, mut delay_began, mut counted) = (0, 0, 0);
    while now < 1000 * MS {
        let stop = throttle.stop_at(Ticks(now)).0;
        if stop > now && now - delay_began >= MS {
            (delay_began, counted) = (now, counted + 1);
        }
        let next = throttle.charge(Ticks(stop - now)).expect("all used").0;
        now = next.max(stop);
    }
    assert!(counted >= 800, "{counted} of 1000");
}

proptest! {
    /// Whenever it wants to run and however late it is stopped, its share stays small, and a turn comes in every
    /// window.
    #[test]
    fn the_share_is_bounded_and_never_nothing(
        is_rare: bool,
        delays in proptest::collection::vec((0..200 * MS, 0..MS / 10), 1..200),
    ) {
        let sliver = if is_rare { Sliver::Rare } else { Sliver::EveryMillisecond };
        let (window, allowance) = sliver.microseconds();
        let (window, allowance) = (ticks(window), ticks(allowance));
        let mut throttle = Throttle::new(MS, sliver, Ticks(0));
        let (mut now, mut ran, mut turns) = (0_u64, 0_u64, 0_u64);
        for (delay, late) in delays {
            now += delay;
            let stop = throttle.stop_at(Ticks(now)).0;
            let stretch = if stop > now { stop - now + late } else { 0 };
            turns += u64::from(stretch > 0);
            (now, ran) = (now + stretch, ran + stretch);
            if let Some(next) = throttle.charge(Ticks(stretch)) {
                prop_assert!(next.0 <= now + window);
                now = now.max(next.0);
            }
        }
        prop_assert!(ran <= (now / window + 1) * (allowance + MS / 10));
        prop_assert!(turns > 0 || now < 2 * window);
    }

    #[test]
    fn any_clock_is_borne(rate: u64, times in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..50)) {
        let mut throttle = Throttle::new(rate, Sliver::EveryMillisecond, Ticks(times[0].0));
        for (now, ran) in times {
            prop_assert!(throttle.stop_at(Ticks(now)).0 >= now);
            throttle.charge(Ticks(ran));
            throttle.cut(if ran % 2 == 0 { Sliver::Rare } else { Sliver::EveryMillisecond });
        }
    }
}
