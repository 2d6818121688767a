// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of a CPU that leaves and an operator that loses patience.

use loom::model;
use loom::sync::Arc;
use loom::thread;

use crate::{LeaveOrder, Leaving, Patience, Ticks, Verdict};

#[test]
fn an_order_that_is_withdrawn_at_any_moment_is_carried_out_or_not_and_both_know() {
    model(|| {
        let order = Arc::new(LeaveOrder::new());
        assert!(order.ask() && !order.ask());
        let cpu = {
            let order = order.clone();
            thread::spawn(move || order.progress() == Leaving::Asked && order.begin())
        };
        let is_withdrawn = order.withdraw();
        let has_begun = cpu.join().unwrap();
        assert_ne!(is_withdrawn, has_begun, "one of them wins");
        let expected = if has_begun { Leaving::Going } else { Leaving::Stays };
        assert_eq!(order.progress(), expected);
    });
}

#[test]
fn a_refusal_is_heard_unless_the_order_was_withdrawn() {
    model(|| {
        let order = Arc::new(LeaveOrder::new());
        assert!(order.ask());
        let cpu = {
            let order = order.clone();
            thread::spawn(move || order.refuse())
        };
        let is_withdrawn = order.withdraw();
        cpu.join().unwrap();
        let expected = if is_withdrawn { Leaving::Stays } else { Leaving::NoRoom };
        assert_eq!(order.progress(), expected);
        order.reset();
        assert!(order.ask(), "it can be asked again");
    });
}

#[test]
fn one_that_cannot_go_on_with_going_reports_it() {
    model(|| {
        let order = LeaveOrder::new();
        assert!(order.ask() && order.begin() && !order.withdraw());
        order.refuse();
        assert_eq!(order.progress(), Leaving::NoRoom);
        assert!(!order.begin() && !order.ask());
    });
}

fn at(ticks: u64) -> Ticks {
    Ticks(ticks)
}

#[test]
fn one_that_does_not_begin_in_time_stays_and_can_be_asked_again() {
    model(|| {
        let order = LeaveOrder::new();
        assert!(order.ask());
        let mut patience = Patience::new(100, at(7));
        assert_eq!(patience.deadline(), at(107));
        assert_eq!(patience.judge(&order, false, at(106)), Verdict::Wait);
        assert_eq!(patience.judge(&order, false, at(107)), Verdict::Late);
        assert!(!order.begin() && order.ask());
    });
}

#[test]
fn one_that_has_begun_is_waited_for_once_more_and_then_stuck() {
    model(|| {
        let order = LeaveOrder::new();
        assert!(order.ask() && order.begin());
        let mut patience = Patience::new(100, at(0));
        assert_eq!(patience.judge(&order, false, at(150)), Verdict::Wait);
        assert_eq!(patience.deadline(), at(250));
        assert_eq!(patience.judge(&order, false, at(249)), Verdict::Wait);
        assert_eq!({ patience }.judge(&order, true, at(999)), Verdict::Left, "late is not never");
        assert_eq!(patience.judge(&order, false, at(250)), Verdict::Stuck);
        assert!(!order.ask(), "its state is not known");
    });
}

#[test]
fn a_refusal_is_reported_at_once_and_ends_the_order() {
    model(|| {
        let order = LeaveOrder::new();
        assert!(order.ask());
        order.refuse();
        assert_eq!(Patience::new(100, at(0)).judge(&order, false, at(1)), Verdict::NoRoom);
        assert!(order.ask());
    });
}
