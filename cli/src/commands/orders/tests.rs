// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the choice of machines that an order is for.

use super::*;
use crate::testing::vm;

fn known() -> Vec<VmInfo> {
    vec![
        vm("web", VmState::Running),
        vm("db", VmState::Paused),
        vm("old", VmState::Stopped),
        vm("bad", VmState::Failed),
        vm("hung", VmState::Panicked),
        vm("new", VmState::Loading),
    ]
}

fn names(names: &[&str]) -> Vms {
    Vms { names: names.iter().map(|name| (*name).to_owned()).collect(), all: false }
}

#[test]
fn all_are_those_that_the_order_applies_to() {
    let of = |order: &Order| meant(&Vms { names: vec![], all: true }, &known(), order.all).expect("no name is wrong");
    assert_eq!(of(&START), ["old", "bad"]);
    assert_eq!(of(&STOP), ["web", "db", "hung", "new"]);
    assert_eq!(of(&PAUSE), ["web", "hung"]);
    assert_eq!(of(&RESUME), ["db"]);
    assert_eq!(of(&RESET), ["web", "db", "hung", "new"]);
}

#[test]
fn each_name_counts_once_and_in_the_order_given() {
    assert_eq!(
        meant(&names(&["old", "web", "old"]), &known(), VmState::ALIVE).expect("they are known"),
        ["old", "web"]
    );
}

#[test]
fn one_unknown_name_is_refused_before_anything_is_done() {
    let error = meant(&names(&["web", "dbb"]), &known(), VmState::ALIVE).expect_err("there is none").to_string();
    assert_eq!(error, "there is no virtual machine \"dbb\"; did you mean \"db\"?");
}
