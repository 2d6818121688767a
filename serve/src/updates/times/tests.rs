// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of updates' times.

use baton::timeline::{Span, Track};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

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
    let mut registry = Registry::default();
    registry.register("phase", "a phase", times.phases[name].clone());
    let mut text = String::new();
    encode(&mut text, &registry).expect("text");
    let value = |row: &str| text.lines().find_map(|line| line.strip_prefix(row)).expect(row).trim().parse();
    (value("phase_count ").expect("a number") as u64, value("phase_sum ").expect("a number"))
}

#[test]
fn each_phase_has_the_longest_time_of_any_cpu_in_each_update() {
    let mut times = Times::default();
    let first: &[Span] = &[span("update: guests restored", 510.0, 20.0)];
    let second: &[Span] = &[span("update: guests restored", 510.0, 40.0), span("update: to the new image", 500.0, 5.0)];
    times.observe(&[update(2, &[first, second])]);
    times.observe(&[update(2, &[first, second]), update(3, &[first])]);
    assert_eq!(times.seen, 2, "none of them twice");
    let (count, sum) = phase(&times, "guests restored");
    assert!(count == 2 && (sum - 60e-6).abs() < 1e-9, "{sum}");
    assert_eq!(phase(&times, "to the new image").0, 1);
    assert_eq!(phase(&times, PREPARATION), (2, 1e-3));
    assert_eq!(times.last_phases, [("guests restored".to_owned(), 20.0)].into());
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
