// SPDX-License-Identifier: MIT OR Apache-2.0
use super::Lease;

#[test]
fn a_lease_that_is_not_renewed_runs_out_once() {
    let mut lease = Lease::NONE;
    lease.begin(100, 50);
    assert_eq!((lease.alarm(), lease.has_run_out(149)), (Some(150), false));
    assert!(lease.has_run_out(150));
    assert!(!lease.has_run_out(1000) && !lease.is_running());
}

#[test]
fn a_renewal_lasts_as_long_as_the_lease_was_asked_for() {
    let mut lease = Lease::NONE;
    lease.begin(100, 50);
    lease.renew(140);
    assert_eq!((lease.has_run_out(189), lease.alarm()), (false, Some(190)));
    assert!(lease.has_run_out(190));
}

#[test]
fn what_does_not_run_is_not_renewed() {
    let mut lease = Lease::NONE;
    lease.renew(10);
    assert!(!lease.is_running() && !lease.has_run_out(u64::MAX));
}

#[test]
fn an_order_of_the_operator_ends_it_and_nothing_runs_out_later() {
    let mut lease = Lease::NONE;
    lease.begin(0, 50);
    assert!(lease.end() && !lease.end());
    assert!(!lease.has_run_out(1000));
}
