// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests at a host that takes signed ones only.

use std::collections::HashSet;

use seal::SecretKey;
use session::{Admitted, Guard, Key, Moment, Plain, Signer};
use wire::{RequestBody, Role};

use crate::input::Input;

const ROLES: [Role; 3] = [Role::Read, Role::Operate, Role::Update];

/// Requests of any bytes, requests of clients that hold keys, and changes of these, in any order and at any time.
pub fn sessions(data: &[u8]) {
    let mut input = Input(data);
    let secret = |number: usize| SecretKey::from_seed([number as u8 + 1; 32]);
    let key = |(number, role): (usize, &Role)| Key {
        name: role.to_string(),
        key: secret(number).public(),
        role: Some(*role),
    };
    let mut guard = Guard::new(ROLES.iter().enumerate().map(key).collect(), Plain::Denied);
    let mut clients: Vec<Signer> = (0..ROLES.len()).map(|number| Signer::new(secret(number))).collect();
    let (mut due, mut now_ns, mut nonce) = (HashSet::new(), 0u64, 0u8);
    while !input.is_empty() {
        let (step, client) = (input.u8() % 5, usize::from(input.u8()) % ROLES.len());
        let body = match step {
            0 => clients[client].begin(),
            1 => match RequestBody::from_bytes(input.string()) {
                Some(body) => body,
                None => continue,
            },
            2 | 3 => {
                let asked = [RequestBody::Info, RequestBody::Restart][usize::from(input.u8() & 1)].clone();
                let Some(mut signed) = clients[client].sign(&asked) else { continue };
                due.insert((ROLES[client].to_string(), signed.signature, signed.body.clone()));
                match (step, input.u8()) {
                    (2, _) => {}
                    (_, byte) if byte & 1 == 0 => signed.body = RequestBody::PowerOff.to_bytes(),
                    (_, byte) => signed.signature[usize::from(byte >> 7)][usize::from(byte >> 1) % 32] ^= 1,
                }
                RequestBody::Signed(signed)
            }
            _ => {
                now_ns = now_ns.saturating_add(input.u64() >> 24);
                guard.expire(now_ns);
                continue;
            }
        };
        nonce = nonce.wrapping_add(1);
        let signature = match &body {
            RequestBody::Signed(signed) => Some(signed.signature),
            _ => None,
        };
        let moment = Moment { now_ns, is_receiving: false };
        match guard.admit(body, moment, || Some([nonce; 32])) {
            Ok(Admitted::Challenge(challenge)) if step == 0 => clients[client].take(Some(challenge)),
            Ok(Admitted::Challenge(_)) => {}
            Ok(Admitted::Request(body, name)) => {
                let (name, signature) = (name.expect("it is signed"), signature.expect("it is signed"));
                let role = ROLES.iter().find(|role| role.to_string() == name).expect("a key");
                assert!(*role >= body.role(), "{name}: {body:?}");
                assert!(
                    due.remove(&(name, signature, body.to_bytes())),
                    "nobody has signed {body:?}, or it came twice"
                );
            }
            Err(denied) => drop((denied.to_string(), denied.hint(), denied.code())),
        }
    }
}
