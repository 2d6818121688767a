// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests at a host that takes signed ones only.

use std::collections::HashSet;

use seal::SecretKey;
use session::{Admitted, Guard, Key, Moment, Plain, Signer};
use wire::{Challenge, RequestBody, Role};

use crate::input::Input;

const ROLES: [Role; 3] = [Role::Read, Role::Operate, Role::Update];

/// A host, three clients that hold keys, and what they have signed and the host has not carried out yet.
struct World {
    guard: Guard,
    clients: Vec<Signer>,
    due: HashSet<(String, [u8; 64], Vec<u8>)>,
    now_ns: u64,
    nonce: u8,
}

/// Requests of any bytes, requests of clients that hold keys, and changes of these, in any order and at any time.
pub fn sessions(data: &[u8]) {
    let mut input = Input(data);
    let secret = |number: usize| SecretKey::from_seed([number as u8 + 1; 32]);
    let key = |(number, role): (usize, &Role)| {
        let (name, key) = (role.to_string(), secret(number).public());
        Key { name, key, role: Some(*role) }
    };
    let guard = Guard::new(ROLES.iter().enumerate().map(key).collect(), Plain::Denied);
    let clients = (0..ROLES.len()).map(|number| Signer::new(secret(number))).collect();
    let mut world = World { guard, clients, due: HashSet::new(), now_ns: 0, nonce: 0 };
    while !input.is_empty() {
        world.step(&mut input);
    }
}

impl World {
    fn step(&mut self, input: &mut Input<'_>) {
        let (step, client) = (input.u8() % 4, usize::from(input.u8()) % ROLES.len());
        let body = match step {
            0 => Some(self.clients[client].begin()),
            1 => RequestBody::from_bytes(input.string()).ok(),
            2 => self.signed(client, input),
            _ => {
                self.now_ns = self.now_ns.saturating_add(input.u64() >> 24);
                self.guard.expire(self.now_ns);
                None
            }
        };
        let Some(body) = body else { return };
        if let Some(challenge) = self.ask(body).filter(|_| step == 0) {
            self.clients[client].take(Some(challenge));
        }
    }

    /// A frame that a client has signed, perhaps changed.
    fn signed(&mut self, client: usize, input: &mut Input<'_>) -> Option<RequestBody> {
        let asked = if input.bool() { RequestBody::Info } else { RequestBody::Restart };
        let mut signed = self.clients[client].sign(&asked)?;
        self.due.insert((ROLES[client].to_string(), signed.signature, signed.body.clone()));
        match (input.u8() % 3, usize::from(input.u8())) {
            (0, _) => {}
            (1, _) => signed.body = RequestBody::PowerOff.to_bytes(),
            (_, place) => signed.signature[place % 64] ^= 1,
        }
        Some(RequestBody::Signed(signed))
    }

    /// A request that is carried out has been signed, by a key of the role that it takes, and was not carried out
    /// before.
    fn ask(&mut self, body: RequestBody) -> Option<Challenge> {
        self.nonce = self.nonce.wrapping_add(1);
        let signature = if let RequestBody::Signed(signed) = &body { Some(signed.signature) } else { None };
        let (moment, nonce) = (Moment { now_ns: self.now_ns, is_receiving: false }, [self.nonce; 32]);
        match self.guard.admit(body, moment, || Some(nonce)) {
            Ok(Admitted::Challenge(challenge)) => return Some(challenge),
            Ok(Admitted::Request(body, name)) => {
                let (name, signature) = (name.expect("it is signed"), signature.expect("it is signed"));
                let role = ROLES.iter().find(|role| role.to_string() == name).expect("a key");
                assert!(*role >= body.role(), "{name}: {body:?}");
                let was_due = self.due.remove(&(name, signature, body.to_bytes()));
                assert!(was_due, "no client has signed {body:?}, or it was carried out before");
            }
            Err(denied) => drop((denied.to_string(), denied.hint(), denied.code())),
        }
        None
    }
}
