// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two CPUs, one fault, every schedule.

use crate::explore::explore;
use crate::fault::{Fault, STEPS, faults_of};

#[test]
fn two_cpus_agree_whatever_the_schedule() {
    let states = explore(2, Fault::None);
    assert!(states > 1_000, "only {states} states");
}

#[test]
fn two_cpus_agree_whatever_fails_on_the_first() {
    faults_of(0).into_iter().for_each(|fault| assert!(explore(2, fault) > 100, "{fault:?}"));
}

#[test]
fn two_cpus_agree_whatever_fails_on_the_second() {
    faults_of(1).into_iter().for_each(|fault| assert!(explore(2, fault) > 100, "{fault:?}"));
}

#[test]
fn two_cpus_that_hang_alike_are_both_fetched() {
    STEPS.into_iter().for_each(|step| assert!(explore(2, Fault::AllHang(step)) > 100, "{step:?}"));
}

#[test]
fn one_cpu_alone_comes_back_whatever_fails() {
    faults_of(0).into_iter().for_each(|fault| assert!(explore(1, fault) > 10, "{fault:?}"));
}
