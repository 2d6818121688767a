// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn function(number: u8) -> Bdf {
    Bdf::of_requester(0, u16::from(number) << 3)
}

#[test]
fn an_input_has_one_function() {
    let mut claims = Claims::new();
    assert_eq!(claims.claim(16, function(1)), Ok(()));
    assert_eq!(claims.claim(16, function(1)), Ok(()), "it is its own");
    assert_eq!(claims.claim(16, function(2)), Err(Refused::Taken(function(1))));
    assert_eq!(claims.claim(17, function(2)), Ok(()));
    claims.release(function(1));
    assert_eq!(claims.claim(16, function(3)), Ok(()));
    assert_eq!(claims.claim(17, function(3)), Err(Refused::Taken(function(2))));
    assert_eq!(claims.claim(16, function(2)), Err(Refused::Taken(function(3))), "it has kept its own");
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
    /// Against a map: no two functions have one input, no function has two, and what is free can be had.
    #[test]
    fn claims_are_as_a_map_has_them(steps in prop::collection::vec(prop_oneof![
        (0..20u32, 0..20u8).prop_map(|(gsi, function)| Step::Claim(gsi, function)),
        (0..20u8).prop_map(Step::Release),
    ], 0..200)) {
        let (mut claims, mut model) = (Claims::new(), BTreeMap::<u8, u32>::new());
        for step in steps {
            match step {
                Step::Claim(gsi, number) => {
                    let other = model.iter().find(|(owner, taken)| **taken == gsi && **owner != number);
                    let expected = match other {
                        Some((owner, _)) => Err(Refused::Taken(function(*owner))),
                        None if model.len() == MOST && !model.contains_key(&number) => Err(Refused::Full),
                        None => Ok(_ = model.insert(number, gsi)),
                    };
                    prop_assert_eq!(claims.claim(gsi, function(number)), expected);
                }
                Step::Release(number) => {
                    model.remove(&number);
                    claims.release(function(number));
                }
            }
        }
    }
}
