// SPDX-License-Identifier: MIT OR Apache-2.0
use wire::GuestTicks;

use super::*;

fn perf(ticks: u64, host: u64, idle_ticks: u64, gone_ticks: u64, guests: &[(u32, u64)]) -> CpuPerf {
    let guests = guests.iter().map(|&(guest, ticks)| GuestTicks { guest, vcpu: 0, ticks }).collect();
    let (at_ns, began_ns, host_cycles, host_reference_cycles) = (ticks, 7, host, host);
    CpuPerf { at_ns, began_ns, ticks, host_cycles, host_reference_cycles, idle_ticks, gone_ticks, guests }
}

fn names() -> Vec<String> {
    vec!["debian".to_owned()]
}

#[test]
fn a_span_is_the_difference_of_two_counts() {
    let span = between(1, &names(), &perf(100, 60, 10, 0, &[(0, 30)]), &perf(1000, 160, 310, 0, &[(0, 530)]));
    let span = span.expect("it goes forward");
    assert_eq!((span.ticks, span.host_cycles, span.idle_ticks, span.guest_ticks), (900, 100, 300, 500));
    assert_eq!(span.guests, [GuestSpan { vm: "debian".to_owned(), vcpu: 0, ticks: 500 }]);
}

#[test]
fn counters_go_round_at_their_width() {
    let span = between(0, &[], &perf(5, WIDTH_MASK, 0, 0, &[]), &perf(15, 9, 0, 0, &[]));
    assert_eq!(span.map(|span| span.host_cycles).ok(), Some(10));
}

#[test]
fn ticks_of_a_guest_that_left_stay_in_the_sum() {
    let (before, after) = (perf(100, 60, 10, 0, &[(0, 10), (7, 20)]), perf(1000, 160, 310, 120, &[(0, 410)]));
    let span = between(0, &names(), &before, &after).expect("it goes forward");
    assert_eq!((span.guest_ticks, span.guests.len(), span.guests[0].ticks), (500, 1, 400));
    let text = table(&[span]).to_string();
    assert!(text.contains("guests that left") && text.contains(" 100 "), "{text}");
}

#[test]
fn counters_that_began_again_are_an_error() {
    let again = CpuPerf { began_ns: 110, ..perf(400, 300, 100, 0, &[]) };
    let error = between(3, &[], &perf(100, 60, 10, 0, &[]), &again).expect_err("they began again");
    assert!(error.to_string().contains("CPU 3"), "{error}");
}

#[test]
fn a_time_that_goes_back_is_an_error() {
    let error = between(3, &[], &perf(400, 0, 0, 0, &[]), &perf(100, 0, 0, 0, &[])).expect_err("it goes back");
    assert!(error.to_string().contains("CPU 3 went back"), "{error}");
}
