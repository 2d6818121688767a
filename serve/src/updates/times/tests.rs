// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of updates' times.

use baton::timeline::{Span, Track};

use super::*;

fn span(name: &str, start_us: f64, length_us: f64) -> Span {
    Span { name: name.to_owned(), start_us, length_us, note: None }
}

/// An update with a blackout of 100 us from 500 us on, and these spans of CPUs in it.
fn update(generation: u64, cpus: &[&[Span]]) -> Run {
    let parts = vec![span("prepared while guests run", 0.0, 500.0), span("guests stand still", 500.0, 100.0)];
    let cpu = |(index, spans): (usize, &&[Span])| Track { name: format!("CPU {index}"), spans: spans.to_vec() };
    let overview = Track { name: "overview".to_owned(), spans: parts };
    let tracks = [overview].into_iter().chain(cpus.iter().enumerate().map(cpu)).collect();
    Run { name: format!("update to generation {generation}"), tracks }
}

/// Returns the count and the sum of a phase's histogram.
fn phase(times: &Times, name: &str) -> (u64, f64) {
    let (_, buckets) = times.phases().find(|(phase, _)| *phase == name).expect("the phase");
    (buckets.count, buckets.sum)
}

#[test]
fn each_phase_has_the_longest_time_of_any_cpu_in_each_update() {
    let mut times = Times::default();
    let first: &[Span] = &[span("update: guests restored", 510.0, 20.0)];
    let second: &[Span] = &[span("update: guests restored", 510.0, 40.0), span("update: to the new image", 500.0, 5.0)];
    times.observe(&[update(2, &[first, second])]);
    times.observe(&[update(2, &[first, second]), update(3, &[first])]);
    assert_eq!(times.seen, 2, "none of them twice");
    assert_eq!(phase(&times, "guests restored"), (2, 60e-6));
    assert_eq!(phase(&times, "to the new image").0, 1);
    assert_eq!(phase(&times, PREPARATION), (2, 1e-3));
    let steps = [("guests restored".to_owned(), 20_000)].into();
    assert_eq!(times.last, Some(Last { preparation_ns: 500_000, blackout_ns: 100_000, steps }));
}

#[test]
fn names_of_a_host_make_no_endless_phases() {
    let mut times = Times::default();
    let spans: Vec<Span> = (0..200).map(|number| span(&format!("name {number}"), 510.0, 1.0)).collect();
    times.observe(&[update(2, &[&spans])]);
    assert_eq!(times.phases.len(), MAX_PHASES);
    times.begin_again();
    times.observe(&[update(1, &[])]);
    assert_eq!((times.seen, phase(&times, PREPARATION).0), (2, 2));
}

#[test]
fn times_that_were_kept_go_on_and_count_no_update_twice() {
    let mut times = Times::default();
    times.observe(&[update(2, &[&[span("update: guests restored", 510.0, 20.0)]])]);
    let json = serde_json::to_vec(&times).expect("JSON");
    let mut again: Times = serde_json::from_slice(&json).expect("the same");
    assert_eq!(again, times);
    again.observe(&[update(2, &[])]);
    assert_eq!(again, times, "the timeline still shows the old one");
    again.observe(&[update(2, &[]), update(3, &[])]);
    assert_eq!((again.seen, again.blackouts().count, phase(&again, PREPARATION).0), (2, 2, 2));
    assert_eq!(serde_json::from_str::<Times>("{}").expect("defaults"), Times::default());
}

#[test]
fn durations_that_are_no_numbers_count_as_none() {
    assert_eq!([f64::NAN, -1.0, 0.0005, f64::INFINITY].map(nanoseconds), [0, 0, 1, u64::MAX]);
}
