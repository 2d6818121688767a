// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything is bounded.

use alloc::vec::Vec;

use wire::{RequestBody, SESSION_IDLE_S};

use super::{SECOND_NS, ask, client, guard, signed, stop};
use crate::{Admitted, Denied, MAX_CHALLENGES, MAX_SESSIONS};

fn is_admitted(result: &Result<Admitted, Denied>) -> bool {
    matches!(result, Ok(Admitted::Request(..)))
}

#[test]
fn a_key_has_a_few_sessions_and_the_one_used_longest_ago_gives_way() {
    let mut guard = guard();
    let mut all = Vec::new();
    for nonce in 0..=MAX_SESSIONS as u8 {
        let mut signer = client(&mut guard, 2, 0, nonce);
        assert!(is_admitted(&signed(&mut guard, &mut signer, &stop(), 0)));
        if let Some(first) = all.first_mut() {
            // The first one is used all the time.
            assert!(is_admitted(&signed(&mut guard, first, &stop(), 0)));
        }
        all.push(signer);
    }
    assert_eq!(guard.list()[1].sessions as usize, MAX_SESSIONS);
    assert_eq!(signed(&mut guard, &mut all[1], &stop(), 0), Err(Denied::UnknownSession));
    for place in [0, 2, 3, 4] {
        assert!(is_admitted(&signed(&mut guard, &mut all[place], &stop(), 0)), "{place}");
    }
}

#[test]
fn challenges_without_an_answer_cost_no_session_of_anybody() {
    let mut guard = guard();
    let mut signer = client(&mut guard, 2, 0, 1);
    assert!(is_admitted(&signed(&mut guard, &mut signer, &stop(), 0)));
    for nonce in 0..100 {
        client(&mut guard, 2, 0, nonce);
    }
    assert!(is_admitted(&signed(&mut guard, &mut signer, &stop(), 0)));
    assert_eq!(guard.expire(31 * SECOND_NS).expect("unanswered").challenges as usize, MAX_CHALLENGES);
}

#[test]
fn a_session_without_requests_ends() {
    let mut guard = guard();
    let mut signer = client(&mut guard, 2, 0, 1);
    let idle_ns = u64::from(SESSION_IDLE_S) * SECOND_NS;
    assert!(is_admitted(&signed(&mut guard, &mut signer, &stop(), 0)));
    assert!(is_admitted(&signed(&mut guard, &mut signer, &stop(), idle_ns - 1)));
    assert!(is_admitted(&signed(&mut guard, &mut signer, &stop(), 2 * idle_ns - 2)));
    assert_eq!(signed(&mut guard, &mut signer, &stop(), 3 * idle_ns), Err(Denied::UnknownSession));
}

#[test]
fn wrong_signatures_are_checked_at_a_bounded_rate() {
    let mut guard = guard();
    let mut signer = client(&mut guard, 2, 0, 1);
    let good = signer.sign(&stop()).expect("a session");
    let mut bad = signer.sign(&stop()).expect("a session");
    bad.signature[32] ^= 1;
    let checked = (0..1000).filter(|_| {
        let refused = ask(&mut guard, RequestBody::Signed(bad.clone()), 0, 0);
        refused != Err(Denied::TooManyFailures)
    });
    assert_eq!(checked.count(), 16);
    assert_eq!(ask(&mut guard, RequestBody::Signed(good.clone()), 0, 0), Err(Denied::TooManyFailures));
    assert!(is_admitted(&ask(&mut guard, RequestBody::Signed(good), SECOND_NS, 0)));
}
