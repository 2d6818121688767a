// SPDX-License-Identifier: MIT OR Apache-2.0
//! The upper limit of a guest.

use std::vec::Vec;

use proptest::prelude::*;

use super::MS;
use crate::Ticks;
use crate::cap::{CAP_WINDOW_MS, Cap, Limit};

const WINDOW: u64 = CAP_WINDOW_MS * MS;
/// The least time for which a vCPU may run at once.
const LEAST: u64 = MS / 10;

fn limit(percent: u32, vcpus: u32) -> Limit {
    Limit { ticks_per_ms: MS, percent, vcpus }
}

#[test]
fn a_guest_of_one_vcpu_runs_for_its_share_of_a_window_and_rests_until_the_next() {
    let (mut cap, limit) = (Cap::default(), limit(25, 1));
    let now = 7 * WINDOW;
    assert_eq!(cap.stop_at(Ticks(now), limit), Ok(Ticks(now + WINDOW / 4)));
    cap.charge(Ticks(WINDOW / 8));
    let now = now + WINDOW / 2;
    assert_eq!(cap.stop_at(Ticks(now), limit), Ok(Ticks(now + WINDOW / 8)), "the rest is left to it");
    cap.charge(Ticks(WINDOW / 8));
    assert_eq!(cap.stop_at(Ticks(now), limit), Err(Ticks(8 * WINDOW)));
    assert_eq!(cap.stop_at(Ticks(8 * WINDOW), limit), Ok(Ticks(8 * WINDOW + WINDOW / 4)));
}

#[test]
fn what_was_run_beyond_the_limit_is_taken_from_later_windows() {
    let (mut cap, limit) = (Cap::default(), limit(10, 1));
    cap.charge(Ticks(WINDOW / 4));
    assert_eq!(cap.stop_at(Ticks(1), limit), Err(Ticks(2 * WINDOW)));
    assert_eq!(cap.stop_at(Ticks(2 * WINDOW), limit), Ok(Ticks(2 * WINDOW + WINDOW / 20)));
}

#[test]
fn what_is_not_used_is_lost() {
    let (mut cap, limit) = (Cap::default(), limit(50, 1));
    assert_eq!(cap.stop_at(Ticks(100 * WINDOW), limit), Ok(Ticks(100 * WINDOW + WINDOW / 2)));
}

#[test]
fn a_limit_of_more_than_its_vcpus_can_use_is_none() {
    let (mut cap, limit) = (Cap::default(), limit(800, 4));
    let mut now = 0;
    while now < 3 * WINDOW {
        let stop = cap.stop_at(Ticks(now), limit).expect("never rests").0;
        (0..4).for_each(|_| cap.charge(Ticks(stop - now)));
        now = stop;
    }
}

proptest! {
    /// vCPUs that always want to run, each on a CPU of its own and stopped a little late, use their limit, and no more.
    #[test]
    fn vcpus_together_use_the_limit(
        percent in 1..400u32,
        vcpus in 1..9u32,
        late in 0..LEAST,
        starts in prop::collection::vec(0..WINDOW, 9),
    ) {
        let (mut cap, limit) = (Cap::default(), limit(percent, vcpus));
        let (windows, mut used) = (50, 0);
        // The time at which each asks next, and since when it has been running.
        let mut next: Vec<(u64, Option<u64>)> = starts.into_iter().map(|start| (start, None)).collect();
        next.truncate(vcpus as usize);
        loop {
            let vcpu = (0..next.len()).min_by_key(|vcpu| next[*vcpu].0).unwrap();
            let (now, since) = next[vcpu];
            if now >= windows * WINDOW {
                break;
            }
            if let Some(since) = since {
                cap.charge(Ticks(now - since));
                used += now - since;
            }
            next[vcpu] = match cap.stop_at(Ticks(now), limit) {
                Ok(stop) => {
                    prop_assert!(stop.0 > now);
                    (stop.0 + late, Some(now))
                }
                Err(until) => {
                    prop_assert!(until.0 > now);
                    (until.0, None)
                }
            };
        }
        let most = (windows * WINDOW * u64::from(percent.min(100 * vcpus)) / 100) as f64;
        // At the end each may be amid a turn, and the last window's debt is not paid yet.
        let turn = (WINDOW * u64::from(percent) / 100).max(LEAST) + late;
        let slack = (u64::from(vcpus) * turn) as f64;
        prop_assert!(used as f64 <= most + slack, "{used} of {most}");
        prop_assert!(used as f64 >= 0.9 * most - slack - (2 * WINDOW * u64::from(vcpus)) as f64, "{used} of {most}");
    }
}
