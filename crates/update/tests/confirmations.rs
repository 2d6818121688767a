// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates that a client confirms, or does not: in virtual time.

use proptest::prelude::*;
use update::confirm::{Confirmation, TooLate};
use update::platform::Clock as _;

mod virtual_time;

use virtual_time::{Time, at};

const SECOND: u64 = 1_000_000;

fn begun(seconds: u32) -> Confirmation {
    Confirmation::begin(Some(seconds), &at(0))
}

#[test]
fn an_update_without_a_deadline_needs_no_confirmation() {
    let mut state = Confirmation::begin(None, &at(0));
    assert_eq!((state.alarm(), state.is_open(), state.turn(&at(u64::MAX), false)), (None, false, false));
    assert_eq!(state.confirm(), Err(TooLate::NotWanted));
}

#[test]
fn a_confirmed_update_stays_and_a_repeated_confirmation_is_no_error() {
    let mut state = begun(5);
    assert!(state.is_open() && !state.turn(&at(5 * SECOND - 1), false));
    assert_eq!((state.confirm(), state.confirm()), (Ok(true), Ok(false)));
    assert_eq!((state.alarm(), state.is_open(), state.turn(&at(u64::MAX), false)), (None, false, false));
}

#[test]
fn an_unconfirmed_one_returns_once() {
    let mut state = begun(5);
    assert_eq!(state.alarm(), Some(5 * SECOND));
    assert!(state.turn(&at(5 * SECOND), false));
    assert!(!state.turn(&at(99 * SECOND), false) && state.is_open() && state.alarm().is_none());
    assert_eq!(state.confirm(), Err(TooLate::Returning));
}

#[test]
fn an_order_that_is_under_way_is_waited_for_and_takes_no_attempt() {
    let mut state = begun(1);
    for second in 1..100 {
        assert!(!state.turn(&at(second * SECOND), true));
        assert_eq!(state.confirm(), Err(TooLate::Returning));
    }
    assert!(state.turn(&at(100 * SECOND), false));
}

#[test]
fn a_refused_return_is_tried_again_for_a_while() {
    let (mut state, mut now, mut attempts) = (begun(1), SECOND, 0);
    while state.turn(&at(now), false) {
        attempts += 1;
        let is_over = state.fail(&at(now), false);
        assert_eq!((is_over, state.turn(&at(now), false)), (attempts == 10, false));
        now += SECOND;
    }
    assert_eq!((attempts, state, state.confirm()), (10, Confirmation::Stayed, Err(TooLate::Stayed)));
}

#[test]
fn one_that_can_never_succeed_is_not() {
    let mut state = begun(1);
    assert!(!state.fail(&at(0), true), "none is under way");
    assert!(state.turn(&at(SECOND), false) && state.fail(&at(SECOND), true));
    assert_eq!((state.alarm(), state.is_open()), (None, false));
}

proptest! {
    /// In any order of events, a confirmed host stays, and an unconfirmed one returns, or stays after at most ten
    /// attempts.
    #[test]
    fn every_history_ends(seconds in 1u32..100, steps in prop::collection::vec((0u64..3 * SECOND, 0u8..5), 0..200)) {
        let (mut state, time, mut attempts, mut is_confirmed) = (begun(seconds), Time::default(), 0, false);
        for (us, step) in steps {
            time.0.set(time.0.get() + us);
            match step {
                0 => is_confirmed |= state.confirm().is_ok(),
                1 => drop(state.fail(&time, false)),
                busy => {
                    let was_due = state.alarm().is_some_and(|at| at <= time.now());
                    let returns = state.turn(&time, busy == 2);
                    attempts += u32::from(returns);
                    prop_assert_eq!(returns, was_due && busy != 2);
                }
            }
            prop_assert!(attempts <= 10);
            prop_assert!(!is_confirmed || (attempts == 0 && state == Confirmation::Confirmed));
            prop_assert!(time.now() >= u64::from(seconds) * SECOND || attempts == 0);
        }
    }
}
