// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that are not suspected.

use super::*;

const LONG: u64 = 36_000;

#[test]
fn a_kernel_that_polls_while_it_is_idle_is_left_alone() {
    assert_eq!(first_spin((0..LONG).map(polling), ALONE), None);
    assert_eq!(first_spin((0..LONG).map(polling), IN_COMPANY), None);
}

#[test]
fn user_space_may_do_what_it_likes() {
    let user = |index| Sample { cpl: 3, ..delay_loop(index) };
    assert_eq!(first_spin((0..LONG).map(user), LAST), None);
}

#[test]
fn a_kernel_that_computes_is_left_alone() {
    let computing = |index| Sample { clock_read_at: None, ..delay_loop(index) };
    assert_eq!(first_spin((0..LONG).map(computing), LAST), None);
}

#[test]
fn a_kernel_that_reads_the_clock_elsewhere_is_left_alone() {
    let measuring = |index| Sample { clock_read_at: Some(KERNEL + 0x4_0000), ..delay_loop(index) };
    assert_eq!(first_spin((0..LONG).map(measuring), LAST), None);
}

#[test]
fn a_delay_loop_beside_others_that_run_is_a_driver_that_waits() {
    assert_eq!(first_spin((0..LONG).map(delay_loop), IN_COMPANY), None);
}

#[test]
fn one_access_to_a_device_in_half_a_second_is_a_sign_of_life() {
    let printing = |index| Sample { io: index / 5, ..delay_loop(index) };
    assert_eq!(first_spin((0..LONG).map(printing), LAST), None);
}

#[test]
fn a_walk_through_code_is_no_spin_however_short_its_steps() {
    let walking =
        |index| Sample { rip: KERNEL + index * 100, clock_read_at: Some(KERNEL + index * 100), ..delay_loop(index) };
    assert_eq!(first_spin((0..LONG).map(walking), LAST), None);
}

#[test]
fn a_sample_is_due_only_after_running_without_a_wait() {
    let mut watch = Watch::new(MS, 0);
    for round in 0..1000 {
        let now = round * 50 * MS;
        assert_eq!(watch.due(now), now + SAMPLE_MS * MS);
        assert_eq!(watch.due(now + 20 * MS), now + SAMPLE_MS * MS, "running on does not put it off");
        assert!(!watch.idle());
    }
}
