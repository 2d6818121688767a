// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn every_kind_of_work_gets_done() {
    let counts = Counts::default();
    let cpus = cpus().unwrap();
    let complaints = on_all(&cpus[..1], Instant::now() + Duration::from_millis(200), &counts);
    assert_eq!(complaints, [""; 0]);
    for count in [&counts.rounds, &counts.barriers, &counts.passes] {
        assert!(count.load(Ordering::Relaxed) > 0);
    }
    assert_eq!(counts.wrong.load(Ordering::Relaxed), 0);
}

#[test]
fn a_missing_cpu_is_reported() {
    let refusal = thread::spawn(|| bind(CpuSet::MAX_CPU - 1)).join().unwrap();
    assert!(refusal.unwrap_err().contains("cannot be bound to"));
}
