// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of sessions.

mod grants;
mod limits;
mod properties;
mod refusals;
mod revoking;

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use seal::SecretKey;
use wire::{RequestBody, Role};

use crate::{Admitted, Denied, Guard, Key, Moment, Plain, Signer};

pub const ROLES: [Role; 3] = [Role::Read, Role::Operate, Role::Update];
pub const SECOND_NS: u64 = 1_000_000_000;

pub fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// Returns the key with this number and name.
pub fn key(number: u8, name: &str, role: Option<Role>) -> Key {
    Key { name: name.to_string(), key: secret(number).public(), role }
}

/// Returns the keys read (1), operate (2), update (3) and old (4), which is revoked.
pub fn keys() -> Vec<Key> {
    vec![
        key(1, "read", Some(Role::Read)),
        key(2, "operate", Some(Role::Operate)),
        key(3, "update", Some(Role::Update)),
        key(4, "old", None),
    ]
}

pub fn guard() -> Guard {
    Guard::new(keys(), Plain::Denied)
}

pub fn at(now_ns: u64) -> Moment {
    Moment { now_ns, is_receiving: false }
}

pub fn stop() -> RequestBody {
    RequestBody::VmStop { name: "web".to_string() }
}

/// Returns the guard's result for a request at a moment; challenges are this number.
pub fn ask(guard: &mut Guard, body: RequestBody, now_ns: u64, nonce: u8) -> Result<Admitted, Denied> {
    guard.admit(body, at(now_ns), || Some([nonce; 32]))
}

/// Returns a client with this key and a session.
pub fn client(guard: &mut Guard, number: u8, now_ns: u64, nonce: u8) -> Signer {
    let mut signer = Signer::new(secret(number));
    match ask(guard, signer.begin(), now_ns, nonce) {
        Ok(Admitted::Challenge(challenge)) => signer.take(Some(challenge)),
        other => panic!("no challenge: {other:?}"),
    }
    signer
}

/// Returns the guard's result for a client's signed request.
pub fn signed(guard: &mut Guard, signer: &mut Signer, body: &RequestBody, now_ns: u64) -> Result<Admitted, Denied> {
    let signed = signer.sign(body).expect("a session");
    ask(guard, RequestBody::Signed(signed), now_ns, 0)
}

#[test]
fn a_host_without_keys_takes_every_request() {
    let mut guard = Guard::new(Vec::new(), Plain::Denied);
    assert!(!guard.demands_sessions());
    assert_eq!(ask(&mut guard, stop(), 0, 0), Ok(Admitted::Request(stop(), None)));
    assert_eq!(ask(&mut guard, Signer::new(secret(1)).begin(), 0, 0), Err(Denied::NoKeys));
}

#[test]
fn an_open_line_takes_requests_with_and_without_a_signature() {
    let mut guard = Guard::new(keys(), Plain::Admitted);
    assert_eq!(ask(&mut guard, stop(), 0, 0), Ok(Admitted::Request(stop(), None)));
    let mut reader = client(&mut guard, 1, 0, 1);
    assert!(matches!(signed(&mut guard, &mut reader, &stop(), 0), Err(Denied::Role { .. })));
}

#[test]
fn each_role_is_enough_for_what_takes_it_or_less() {
    let bodies = [RequestBody::Info, stop(), RequestBody::PowerOff];
    for (number, has) in (1..).zip(ROLES) {
        let mut guard = guard();
        let mut signer = client(&mut guard, number, 0, number);
        for (body, needs) in bodies.iter().zip(ROLES) {
            let expected = match has >= needs {
                true => Ok(Admitted::Request(body.clone(), Some(has.to_string()))),
                false => Err(Denied::Role { key: has.to_string(), has, needs }),
            };
            assert_eq!(signed(&mut guard, &mut signer, body, 0), expected, "{has}: {body:?}");
        }
    }
}

#[test]
fn a_piece_of_a_file_needs_a_file_that_is_being_sent() {
    let mut guard = guard();
    let piece = RequestBody::UploadData { offset: 0, bytes: vec![1] };
    assert_eq!(ask(&mut guard, piece.clone(), 0, 0), Err(Denied::NoSession));
    let moment = Moment { is_receiving: true, ..at(0) };
    assert_eq!(guard.admit(piece.clone(), moment, || None), Ok(Admitted::Request(piece, None)));
    assert_eq!(guard.admit(RequestBody::UploadDrop, moment, || None), Err(Denied::NoSession));
}
