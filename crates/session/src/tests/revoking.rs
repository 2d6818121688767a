// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that lose their role.

use alloc::string::ToString;
use alloc::vec;

use wire::{RequestBody, Role};

use super::{ask, client, guard, key, keys, secret, signed, stop};
use crate::{Denied, Guard, Plain, Signer};

#[test]
fn what_is_revoked_ends_sessions_at_once_and_begins_none() {
    let mut guard = guard();
    let mut signer = client(&mut guard, 2, 0, 1);
    assert!(signed(&mut guard, &mut signer, &stop(), 0).is_ok());
    assert_eq!(guard.revoke("operate"), Ok(Some(secret(2).public().bytes())));
    assert_eq!(guard.revoke("operate"), Ok(None), "it has none any more");
    assert_eq!(signed(&mut guard, &mut signer, &stop(), 0), Err(Denied::UnknownSession));
    assert_eq!(ask(&mut guard, signer.begin(), 0, 0), Err(Denied::Revoked("operate".to_string())));
    assert_eq!(guard.revoke("other"), Err(Denied::UnknownName("other".to_string())));
}

#[test]
fn the_last_key_that_could_revoke_or_update_stays() {
    assert_eq!(guard().revoke("update"), Err(Denied::LastKey("update".to_string())));
    let mut open = Guard::new(keys(), Plain::Admitted);
    assert!(open.revoke("update").is_ok(), "the line itself may");
    let two = vec![key(3, "update", Some(Role::Update)), key(5, "second", Some(Role::Update))];
    assert!(Guard::new(two, Plain::Denied).revoke("second").is_ok());
}

#[test]
fn the_next_image_knows_what_was_revoked() {
    let mut before = guard();
    let revoked = before.revoke("read").expect("it is one");
    let mut next = guard();
    next.adopt(revoked.into_iter().chain([[0x77; 32]]));
    assert_eq!(next.list().iter().filter(|key| key.role.is_none()).count(), 2);
    assert!(matches!(ask(&mut next, Signer::new(secret(1)).begin(), 0, 0), Err(Denied::Revoked(_))));
    let mut other = client(&mut next, 2, 0, 1);
    assert!(signed(&mut next, &mut other, &RequestBody::Info, 0).is_ok());
}
