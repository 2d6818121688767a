// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use super::*;

fn all() -> Vec<State> {
    let plain = [
        State::Offline,
        State::Kicked,
        State::Alive,
        State::Initialised,
        State::TscSynchronised,
        State::Online,
        State::Parked,
    ];
    plain.into_iter().chain(Phase::ALL.map(State::Dead)).collect()
}

#[test]
fn each_state_has_its_own_word() {
    all().into_iter().for_each(|state| assert_eq!(State::from_word(state.to_word()), state));
}

#[test]
fn the_legal_transitions_are_these() {
    let legal: Vec<_> = all()
        .into_iter()
        .flat_map(|from| all().into_iter().filter(move |to| from.may_become(*to)).map(move |to| (from, to)))
        .collect();
    let expected = [
        (State::Offline, State::Kicked),
        (State::Offline, State::Parked),
        (State::Kicked, State::Alive),
        (State::Kicked, State::Dead(Phase::FirstSign)),
        (State::Alive, State::Initialised),
        (State::Alive, State::Dead(Phase::Initialisation)),
        (State::Initialised, State::TscSynchronised),
        (State::Initialised, State::Dead(Phase::TscSync)),
        (State::TscSynchronised, State::Online),
        (State::TscSynchronised, State::Dead(Phase::Online)),
        (State::Online, State::Offline),
        (State::Online, State::Parked),
        (State::Parked, State::Kicked),
    ];
    assert_eq!(legal, expected);
}

#[test]
fn the_dead_stay_dead_and_the_online_do_not_die_in_bring_up() {
    for state in all() {
        assert!(Phase::ALL.iter().all(|phase| !State::Dead(*phase).may_become(state)));
    }
    assert!(Phase::ALL.iter().all(|phase| !State::Online.may_become(State::Dead(*phase))));
}

#[test]
fn an_absurd_word_is_no_state_to_build_on() {
    [7, 8, 12, u32::MAX].iter().for_each(|word| assert_eq!(State::from_word(*word), State::Dead(Phase::FirstSign)));
}
