// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences of two samples.

use wire::{ExitKind, PerfEvent, PerfState};

use super::*;

fn counter(number: u8, overflows: u64) -> PerfCounter {
    PerfCounter {
        number,
        is_fixed: false,
        event: PerfEvent::Cycles,
        user: true,
        kernel: true,
        state: PerfState::Counts,
        value: 5,
        overflows,
    }
}

fn sample(at_ns: u64, hlt: u64, counters: Vec<PerfCounter>) -> VcpuPerf {
    let exits = vec![ExitCount { kind: ExitKind::Halt, count: hlt }];
    VcpuPerf { at_ns, ran_ns: at_ns / 2, waited_ns: at_ns / 4, counted_ticks: at_ns / 5, exits, counters }
}

#[test]
fn a_span_is_the_difference_of_two_samples() {
    let before = sample(1_000, 10, vec![counter(0, 3)]);
    let after = sample(3_000, 25, vec![counter(0, 10), counter(1, 4)]);
    let span = between(2, &before, &after);
    assert_eq!((span.vcpu, span.over_ns, span.ran_ns, span.waited_ns), (2, 2_000, 1_000, 500));
    assert_eq!(span.counted_ticks, 400);
    assert_eq!(span.exits, [ExitCount { kind: ExitKind::Halt, count: 15 }]);
    let overflows: Vec<u64> = span.counters.iter().map(|counter| counter.overflows_meanwhile).collect();
    assert_eq!(overflows, [7, 4], "a counter that is new has all its overflows from this time");
}

#[test]
fn counts_that_were_reset_count_from_there() {
    let span = between(0, &sample(5_000, 100, vec![counter(0, 90)]), &sample(6_000, 4, vec![counter(0, 2)]));
    assert_eq!(span.exits, [ExitCount { kind: ExitKind::Halt, count: 4 }]);
    assert_eq!(span.counters[0].overflows_meanwhile, 2);
}

#[test]
fn kinds_of_exits_that_did_not_come_are_left_out() {
    assert!(between(0, &sample(1_000, 10, vec![]), &sample(2_000, 10, vec![])).exits.is_empty());
}

#[test]
fn tables_have_a_line_for_each_cpu_and_each_counter() {
    let spans = [
        between(0, &sample(1_000, 10, vec![]), &sample(2_000, 30, vec![counter(0, 1)])),
        between(1, &sample(1_000, 10, vec![]), &sample(1_000, 10, vec![])),
    ];
    let work = work_table(&spans).to_string();
    assert_eq!(work.lines().count(), 3);
    assert!(work.contains("50.0 %") && work.contains("Halt (100.0 %)"), "{work}");
    assert!(work.lines().nth(2).is_some_and(|line| line.contains('-')), "no time, no share: {work}");
    let counters = counter_table(&spans).to_string();
    assert_eq!(counters.lines().count(), 2);
    assert!(counters.contains("cycles") && counters.contains("user, kernel") && counters.contains("0x5"), "{counters}");
}
