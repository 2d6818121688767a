// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn function(number: u8) -> Bdf {
    Bdf::of_requester(0, u16::from(number) << 3)
}

/// A function's claim, as one of a guest that has the functions of ten numbers.
fn claim_of(gsi: u32, number: u8) -> Claim {
    let guest = u16::from(number / 10);
    Claim { gsi, function: function(number), guest, number: u16::from(number % 10), vector: None }
}

fn numbers(claims: &[Claim]) -> Vec<u16> {
    claims.iter().map(|claim| claim.number).collect()
}

#[test]
fn an_input_has_functions_of_one_guest() {
    let mut claims = Claims::new();
    assert_eq!(claims.claim(claim_of(16, 1)), Ok(()));
    assert_eq!(claims.claim(claim_of(16, 1)), Ok(()), "it is its own");
    assert_eq!(claims.claim(claim_of(16, 2)), Ok(()), "it is its guest's");
    assert_eq!(claims.claim(claim_of(16, 11)), Err(Refused::Taken(function(1))));
    assert_eq!(claims.claim(claim_of(17, 11)), Ok(()));
    claims.release(function(1));
    assert_eq!(claims.claim(claim_of(16, 12)), Err(Refused::Taken(function(2))));
    claims.release(function(2));
    assert_eq!(claims.claim(claim_of(16, 12)), Ok(()));
    assert_eq!(claims.claim(claim_of(17, 3)), Err(Refused::Taken(function(11))));
    assert_eq!(claims.claim(claim_of(16, 11)), Ok(()), "in place of the one that it had");
    assert_eq!(claims.claim(claim_of(17, 3)), Ok(()));
    assert_eq!((claims.gsi_of(1, 1), claims.gsi_of(0, 3), claims.gsi_of(0, 1)), (Some(16), Some(17), None));
}

#[test]
fn an_input_is_shared_beside_a_closed_line_too() {
    let mut claims = Claims::new();
    for (gsi, number) in [(16, 1), (17, 3), (16, 2)] {
        assert!(!claims.is_shared(16));
        assert_eq!(claims.claim(claim_of(gsi, number)), Ok(()));
    }
    assert!(claims.is_shared(16) && !claims.is_shared(17));
    assert!(claims.at(16).is_empty(), "none is open");
    claims.set_vector(function(1), Some(0x50));
    assert_eq!(numbers(&claims.at(16)), [1]);
    claims.set_vector(function(2), Some(0x50));
    assert_eq!(numbers(&claims.at(16)), [1, 2]);
    assert!(claims.at(17).is_empty());
    claims.release(function(1));
    assert!(!claims.is_shared(16));
}

#[test]
fn an_interrupt_that_none_reports_is_for_all_if_it_repeats() {
    use Interrupted::*;

    let mut claims = Claims::new();
    for number in 1..=2 {
        assert_eq!(claims.claim(claim_of(16, number)), Ok(()));
    }
    assert_eq!(claims.note_interrupt(16, false), Closed);
    claims.set_vector(function(2), Some(0x50));
    assert_eq!(claims.note_interrupt(16, true), Reported);
    assert_eq!([(); 4].map(|()| claims.note_interrupt(16, false)), [Served, All, Served, All]);
    assert_eq!(claims.note_interrupt(16, false), Served);
    assert_eq!(claims.note_interrupt(17, false), Closed, "another input");
    assert_eq!(claims.note_interrupt(16, true), Reported);
    assert_eq!(claims.note_interrupt(16, false), Served, "one was reported between");
    claims.release(function(1));
    claims.release(function(2));
    assert_eq!(claims.claim(claim_of(16, 3)), Ok(()));
    claims.set_vector(function(3), Some(0x51));
    assert_eq!(claims.note_interrupt(16, false), Served, "the one before was for other functions");
}

#[test]
fn a_function_reports_an_interrupt_by_bit_3_of_its_status() {
    struct Status(u16);
    impl ConfigSpace for Status {
        fn read(&mut self, _: Bdf, register: u16) -> u32 {
            assert_eq!(register, 4);
            u32::from(self.0) << 16
        }
        fn now(&mut self) -> u64 {
            0
        }
        fn pause(&mut self) {}
    }
    assert!(reports_interrupt(&mut Status(1 << 3), function(1)));
    assert!(!reports_interrupt(&mut Status(!(1 << 3)), function(1)));
}

#[test]
fn a_partner_has_an_open_line_at_the_same_input() {
    let mut claims = Claims::new();
    for (gsi, number) in [(16, 1), (16, 2), (17, 3)] {
        assert_eq!(claims.claim(claim_of(gsi, number)), Ok(()));
    }
    claims.set_vector(function(1), Some(0x50));
    claims.set_vector(function(3), Some(0x51));
    assert_eq!(claims.partner(16, function(1)), None, "the other one is closed");
    assert_eq!(claims.partner(16, function(2)).map(|claim| claim.vector), Some(Some(0x50)));
    assert_eq!((claims.vector_of(function(1)), claims.vector_of(function(2))), (Some(0x50), None));
    claims.set_vector(function(1), None);
    assert_eq!(claims.partner(16, function(2)), None);
}

#[test]
fn a_line_that_stays_asserted_is_unserved() {
    let mut unserved = Unserved::default();
    for _ in 0..3 {
        assert!((1..Unserved::LIMIT).all(|_| !unserved.note_end(true)));
        assert!(!unserved.note_end(false), "it was served once");
    }
    assert!((1..Unserved::LIMIT).all(|_| !unserved.note_end(true)));
    assert!(unserved.note_end(true) && unserved.note_end(true));
}

/// A step with an input and a function.
#[derive(Clone, Debug)]
enum Step {
    Claim(u32, u8),
    Release(u8),
}

proptest! {
    /// Against a map: no functions of two guests have one input, no function has two, and what is free can be had.
    #[test]
    fn claims_are_as_a_map_has_them(steps in prop::collection::vec(prop_oneof![
        (0..20u32, 0..40u8).prop_map(|(gsi, function)| Step::Claim(gsi, function)),
        (0..40u8).prop_map(Step::Release),
    ], 0..200)) {
        let (mut claims, mut model) = (Claims::new(), BTreeMap::<u8, u32>::new());
        for step in steps {
            match step {
                Step::Claim(gsi, number) => {
                    let is_anothers = model.iter().any(|(owner, taken)| *taken == gsi && owner / 10 != number / 10);
                    let expected = match is_anothers {
                        true => Err(()),
                        false if model.len() == MOST && !model.contains_key(&number) => Err(()),
                        false => Ok(_ = model.insert(number, gsi)),
                    };
                    prop_assert_eq!(claims.claim(claim_of(gsi, number)).map_err(|_| ()), expected);
                }
                Step::Release(number) => {
                    model.remove(&number);
                    claims.release(function(number));
                }
            }
        }
    }
}
