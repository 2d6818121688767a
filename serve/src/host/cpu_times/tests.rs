// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of CPU times.

use proptest::prelude::*;
use wire::GuestTicks;

use super::*;

/// The time stamp counter's frequency.
const HZ: u64 = 1_000;

/// Figures of a CPU whose counters were begun then: a half in guests, a tenth in the host.
fn figures(began_ns: u64, ticks: u64) -> CpuPerf {
    CpuPerf {
        at_ns: began_ns + ticks,
        began_ns,
        ticks,
        host_cycles: ticks,
        host_reference_cycles: ticks / 10,
        idle_ticks: ticks / 10 * 4,
        gone_ticks: ticks / 4,
        guests: vec![GuestTicks { guest: 0, vcpu: 0, ticks: ticks / 4 }],
    }
}

fn noted(all: &[CpuPerf]) -> CpuTime {
    let mut times = CpuTimes::default();
    all.iter().for_each(|figures| times.note([(3, figures.clone())].into(), HZ));
    times.sums()[&3]
}

fn is_about(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

#[test]
fn time_is_that_since_the_first_reading_by_its_user() {
    assert_eq!(noted(&[figures(0, 5_000)]), CpuTime::default());
    let time = noted(&[figures(0, 5_000), figures(0, 6_000), figures(0, 7_000)]);
    assert!(is_about(time.guests, 1.0) && is_about(time.host, 0.2) && is_about(time.idle, 0.8), "{time:?}");
    let last = time.last.expect("shares");
    assert!(is_about(last.guests, 0.5) && is_about(last.host, 0.1) && is_about(last.idle, 0.4), "{last:?}");
}

#[test]
fn counters_that_were_begun_again_add_the_time_since_then() {
    let time = noted(&[figures(0, 1_000), figures(0, 2_000), figures(9, 4_000), figures(9, 4_000)]);
    assert!(is_about(time.guests, 2.5) && time.last.is_some(), "{time:?}");
}

#[test]
fn a_cpu_that_goes_offline_keeps_its_sums_and_has_no_shares() {
    let mut times = CpuTimes::default();
    [1_000, 2_000].into_iter().for_each(|ticks| times.note([(3, figures(0, ticks))].into(), HZ));
    times.note(BTreeMap::new(), HZ);
    let time = times.sums()[&3];
    assert!(is_about(time.guests, 0.5) && time.last.is_none(), "{time:?}");
    // It comes online again: what was counted meanwhile is not known.
    times.note([(3, figures(7, 3_000))].into(), HZ);
    assert!(is_about(times.sums()[&3].guests, 0.5));
    times.retain(|cpu| cpu != 3);
    assert!(times.sums().is_empty());
}

#[test]
fn a_host_that_was_started_again_begins_with_its_next_figures() {
    let mut times = CpuTimes::default();
    [1_000, 2_000].into_iter().for_each(|ticks| times.note([(3, figures(0, ticks))].into(), HZ));
    times.begin_again();
    times.note([(3, figures(0, 9_000))].into(), HZ);
    assert!(is_about(times.sums()[&3].guests, 0.5));
}

proptest! {
    #[test]
    fn whatever_a_host_counts_sums_never_fall(all in prop::collection::vec(any::<[u64; 5]>(), 1..8), hz in any::<u64>()) {
        let mut times = CpuTimes::default();
        let mut last = CpuTime::default();
        for [began_ns, ticks, host_reference_cycles, idle_ticks, gone_ticks] in all {
            let began_ns = began_ns % 2;
            let perf = CpuPerf { began_ns, ticks, host_reference_cycles, idle_ticks, gone_ticks, ..CpuPerf::default() };
            times.note([(0, perf)].into(), hz);
            let now = times.sums()[&0];
            prop_assert!(now.guests >= last.guests && now.host >= last.host && now.idle >= last.idle);
            prop_assert!([now.guests, now.host, now.idle].iter().all(|seconds| seconds.is_finite()));
            last = now;
        }
    }
}
