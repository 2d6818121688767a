// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of notifications that are left out.

use proptest::prelude::*;

use crate::{Mitigation, Occasion};

const DENSE: u64 = 200;

/// A turn with frames.
fn sends(mitigation: &mut Mitigation, now: u64) -> bool {
    mitigation.decide(Occasion::Due, true, now, DENSE)
}

#[test]
fn a_flood_is_polled_from_its_second_turn_on() {
    let mut mitigation = Mitigation::default();
    assert!(!sends(&mut mitigation, 1000));
    assert!((1..100).all(|turn| sends(&mut mitigation, 1000 + turn * 50)));
}

#[test]
fn frames_far_apart_are_notified() {
    let mut mitigation = Mitigation::default();
    assert!((1..100).all(|turn| !sends(&mut mitigation, turn * 1000)));
}

#[test]
fn a_vcpu_that_waits_is_asked_for_notifications_and_one_that_is_preempted_stays_as_it_was() {
    for polls in [false, true] {
        let mut mitigation = Mitigation::default();
        sends(&mut mitigation, 1000);
        assert!(!polls || sends(&mut mitigation, 1010));
        assert_eq!(mitigation.decide(Occasion::Preempted, false, 1020, DENSE), polls);
        assert_eq!(mitigation.decide(Occasion::Preempted, true, 1030, DENSE), polls);
        assert!(!mitigation.decide(Occasion::Idle, false, 1040, DENSE));
    }
}

#[test]
fn after_polls_in_vain_tries_become_rare_and_one_that_finds_frames_makes_them_less_so() {
    let mut mitigation = Mitigation::default();
    let mut now = 1000;
    let mut turns_until_a_try = |mitigation: &mut Mitigation| {
        let tried = (1..10_000).find(|_| {
            now += 10;
            sends(mitigation, now)
        });
        now += 50;
        tried.expect("a try")
    };
    turns_until_a_try(&mut mitigation);
    for expected in [2, 4, 8, 16, 32, 64, 128, 256, 256, 256] {
        assert!(!mitigation.decide(Occasion::Due, false, 0, DENSE), "in vain");
        assert_eq!(turns_until_a_try(&mut mitigation), expected);
    }
    for _ in 0..8 {
        assert!(mitigation.decide(Occasion::Due, true, u64::MAX, DENSE));
    }
    assert!(!mitigation.decide(Occasion::Due, false, 0, DENSE));
    mitigation.decide(Occasion::Due, true, 1_000_000, DENSE);
    assert!(sends(&mut mitigation, 1_000_001), "two turns, as at first");
}

proptest! {
    /// Whatever comes: a vCPU that waits, with an empty queue, is notified of the next frame.
    #[test]
    fn no_frame_waits_for_a_vcpu_that_waits(
        turns in prop::collection::vec((0u8..3, any::<bool>(), any::<u64>()), 0..60), dense: u64,
    ) {
        let mut mitigation = Mitigation::default();
        for (occasion, has_sent, now) in turns {
            let occasion = [Occasion::Due, Occasion::Preempted, Occasion::Idle][usize::from(occasion)];
            mitigation.decide(occasion, has_sent, now, dense);
        }
        prop_assert!(!mitigation.decide(Occasion::Idle, false, 0, dense));
    }
}
