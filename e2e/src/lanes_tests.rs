// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn one_more_emulator_runs_while_cores_idle() {
    for (running, idle, may) in [(1, 0.0, true), (2, 0.0, false), (2, 0.7, false), (2, 0.8, true), (3, 2.0, false)] {
        assert_eq!(may_enter(running, 2, idle), may, "{running} run, {idle} idle");
    }
}

#[test]
fn idle_time_is_that_of_all_cores() {
    let ticks = |line: &str| Ticks::parse(line).expect("a line of the kernel's");
    let before = ticks("cpu  100 0 50 1000 10 0 0 0 0 0\ncpu0 1 2 3");
    let after = ticks("cpu  150 0 60 1130 20 0 0 0 0 0\n");
    assert_eq!((before.idle, before.all), (1010, 1160));
    assert!((after.idle_share_since(before) - 0.7).abs() < 1e-9);
    assert!(after.idle_share_since(after).abs() < 1e-9);
    for line in ["", "intr 1 2 3", "cpu  1 2 3", "cpu  1 2 x 4 5"] {
        assert_eq!(Ticks::parse(line), None, "{line:?}");
    }
}

#[test]
fn a_lane_is_free_again_once_its_boot_has_ended() {
    let lanes: Vec<_> = (0..usual()).map(|_| enter()).collect();
    assert_eq!(*running(), usual());
    drop(lanes);
    assert_eq!(*running(), 0);
}
