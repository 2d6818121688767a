// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each bad request is refused by name.

use alloc::string::ToString;
use alloc::vec::Vec;

use wire::{RefusalCode, RequestBody};

use super::{SECOND_NS, ask, client, guard, secret, signed, stop};
use crate::{Admitted, Denied, Signer};

#[test]
fn a_request_without_a_signature_is_refused() {
    let refused = ask(&mut guard(), RequestBody::Info, 0, 0).expect_err("refused");
    assert_eq!((refused.clone(), refused.code()), (Denied::NoSession, RefusalCode::Protocol));
    assert!(refused.hint().contains("--key FILE"));
}

#[test]
fn a_frame_that_comes_again_is_refused() {
    let mut guard = guard();
    let mut signer = client(&mut guard, 2, 0, 1);
    let frames: Vec<_> = (0..3).map(|_| signer.sign(&stop()).expect("a session")).collect();
    for frame in [&frames[0], &frames[2]] {
        assert!(ask(&mut guard, RequestBody::Signed(frame.clone()), 0, 0).is_ok());
    }
    for (frame, sequence) in [(&frames[2], 3), (&frames[1], 2), (&frames[0], 1)] {
        let refused = ask(&mut guard, RequestBody::Signed(frame.clone()), 0, 0);
        assert_eq!(refused, Err(Denied::Replayed { key: "operate".to_string(), sequence, newest: 3 }));
    }
}

#[test]
fn a_frame_of_another_session_or_of_an_image_before_is_refused() {
    let mut before = guard();
    let mut signer = client(&mut before, 2, 0, 1);
    let frame = signer.sign(&stop()).expect("a session");
    let mut after = guard();
    assert_eq!(ask(&mut after, RequestBody::Signed(frame.clone()), 0, 0), Err(Denied::UnknownSession));
    // The number is the same, the challenge is not.
    client(&mut after, 2, 0, 2);
    let refused = ask(&mut after, RequestBody::Signed(frame), 0, 0);
    assert_eq!(refused, Err(Denied::BadSignature("operate".to_string())));
}

#[test]
fn a_key_that_is_not_known_or_is_revoked_begins_no_session() {
    let stranger = Signer::new(secret(9));
    assert_eq!(ask(&mut guard(), stranger.begin(), 0, 0), Err(Denied::UnknownKey(stranger.id())));
    let revoked = Signer::new(secret(4));
    let refused = ask(&mut guard(), revoked.begin(), 0, 0).expect_err("refused");
    assert_eq!(
        (refused.to_string().as_str(), refused.code()),
        ("the control key \"old\" is revoked", RefusalCode::Denied)
    );
}

#[test]
fn anothers_key_signs_nothing_in_a_session() {
    let mut guard = guard();
    let Ok(Admitted::Challenge(challenge)) = ask(&mut guard, Signer::new(secret(3)).begin(), 0, 1) else {
        panic!("no challenge");
    };
    let mut thief = Signer::new(secret(1));
    thief.take(Some(challenge));
    let refused = signed(&mut guard, &mut thief, &RequestBody::PowerOff, 0);
    assert_eq!(refused, Err(Denied::BadSignature("update".to_string())));
}

#[test]
fn sessions_in_sessions_and_noise_are_no_requests() {
    let mut guard = guard();
    let mut signer = client(&mut guard, 3, 0, 1);
    let inner = signer.sign(&stop()).expect("a session");
    for body in [signer.begin(), RequestBody::Signed(inner)] {
        let refused = signed(&mut guard, &mut signer, &body, 0);
        assert_eq!(refused, Err(Denied::NoRequest("update".to_string())));
    }
}

#[test]
fn without_random_numbers_there_is_no_session() {
    let begin = Signer::new(secret(1)).begin();
    assert_eq!(guard().admit(begin, super::at(0), || None), Err(Denied::NoRandomNumbers));
}

#[test]
fn a_client_that_never_answers_is_named_and_dropped() {
    let mut guard = guard();
    client(&mut guard, 1, 0, 1);
    client(&mut guard, 1, SECOND_NS, 2);
    assert_eq!(guard.expire(29 * SECOND_NS), None);
    let unanswered = guard.expire(31 * SECOND_NS).expect("two");
    assert_eq!((unanswered.key.as_str(), unanswered.challenges), ("read", 2));
    assert_eq!(guard.expire(u64::MAX), None);
}
