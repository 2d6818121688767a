// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const STAMPS: Stamps = Stamps { kicked: 100, alive: 110, initialised: 130, synchronised: 170, online: 171, dead: 999 };

#[test]
fn waiting_is_shared_out_phase_by_phase() {
    let mut clock = 100;
    let waits = Waits::of(&mut clock, &STAMPS, State::Online);
    assert_eq!(waits, Waits { first_sign: 10, initialisation: 20, tsc_sync: 40, online: 1 });
    assert_eq!((waits.total(), clock), (71, 171));
}

#[test]
fn what_has_happened_already_costs_nothing() {
    let mut clock = 150;
    let waits = Waits::of(&mut clock, &STAMPS, State::Online);
    assert_eq!(waits, Waits { first_sign: 0, initialisation: 0, tsc_sync: 20, online: 1 });
    assert_eq!(Waits::of(&mut clock, &STAMPS, State::Online), Waits::default());
}

#[test]
fn a_dead_cpu_costs_until_it_was_given_up_and_in_that_phase() {
    let mut clock = 100;
    let waits = Waits::of(&mut clock, &STAMPS, State::Dead(Phase::Initialisation));
    assert_eq!(waits, Waits { first_sign: 10, initialisation: 889, ..Waits::default() });
    let mut clock = 100;
    let waits = Waits::of(&mut clock, &STAMPS, State::Dead(Phase::FirstSign));
    assert_eq!(waits, Waits { first_sign: 899, ..Waits::default() });
}

#[test]
fn stamps_that_run_backwards_cost_nothing() {
    let stamps = Stamps { alive: 500, initialised: 3, synchronised: u64::MAX, online: 0, ..STAMPS };
    let mut clock = 400;
    let waits = Waits::of(&mut clock, &stamps, State::Online);
    assert_eq!(waits.total(), u64::MAX - 400);
}
