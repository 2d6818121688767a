// SPDX-License-Identifier: MIT OR Apache-2.0
//! In any order of clients, an attacker on the line, and time: a request is carried out only if a key has signed it for
//! the first time, in a session of this host, with a sufficient role.

use std::collections::HashSet;
use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;
use wire::{RequestBody, Role, Signed};

use super::{ROLES, SECOND_NS, ask, guard, secret, stop};
use crate::{Admitted, Guard, Signer};

/// One step of the world.
#[derive(Clone, Debug)]
enum Step {
    /// A client begins a session.
    Begin(usize),
    /// A client signs a request that takes this role; the line may lose it.
    Sign { client: usize, role: usize, is_lost: bool },
    /// The attacker repeats a frame from the line.
    Replay(usize),
    /// The attacker changes a byte of a frame from the line, and sends it.
    Change { frame: usize, byte: usize, to: u8 },
    /// The attacker sends a request without a signature.
    Plain(usize),
    /// The attacker asks for a session.
    Ask(u8),
    /// The host goes to its next image.
    Update,
    /// A key is revoked.
    Revoke(usize),
    /// Time passes.
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let sign = (0..3usize, 0..3usize, prop::bool::weighted(0.2));
    prop_oneof![
        2 => (0..3usize).prop_map(Step::Begin),
        6 => sign.prop_map(|(client, role, is_lost)| Step::Sign { client, role, is_lost }),
        4 => any::<usize>().prop_map(Step::Replay),
        3 => (any::<usize>(), any::<usize>(), any::<u8>())
            .prop_map(|(frame, byte, to)| Step::Change { frame, byte, to }),
        1 => (0..3usize).prop_map(Step::Plain),
        1 => (1..6u8).prop_map(Step::Ask),
        1 => Just(Step::Update),
        1 => (0..2usize).prop_map(Step::Revoke),
        1 => (0..200 * SECOND_NS).prop_map(Step::Wait),
    ]
}

fn body(role: usize) -> RequestBody {
    [RequestBody::Info, stop(), RequestBody::PowerOff][role].clone()
}

struct World {
    guard: Guard,
    clients: Vec<Signer>,
    /// All frames from the line, each with its signer and the signer's role.
    line: Vec<Signed>,
    /// The requests that were signed and not carried out yet.
    signed: HashSet<(u8, Vec<u8>, Vec<u8>)>,
    revoked: Vec<usize>,
    nonce: u8,
    now_ns: u64,
}

impl World {
    fn nonce(&mut self) -> [u8; 32] {
        self.nonce = self.nonce.wrapping_add(1);
        [self.nonce; 32]
    }

    /// Sends a signed frame; if it is carried out, it must be one that its key has signed and that was not before.
    fn send(&mut self, frame: &Signed) -> Result<(), TestCaseError> {
        let Ok(admitted) = ask(&mut self.guard, RequestBody::Signed(frame.clone()), self.now_ns, 0) else {
            return Ok(());
        };
        let Admitted::Request(body, Some(name)) = admitted else { panic!("{admitted:?}") };
        let place = ROLES.iter().position(|role| role.to_string() == name).expect("a key");
        prop_assert!(ROLES[place] >= body.role(), "{name} has no role for {body:?}");
        prop_assert!(!self.revoked.contains(&place), "{name} is revoked");
        let signature = frame.signature.to_vec();
        let was_due = self.signed.remove(&(place as u8, signature, body.to_bytes()));
        prop_assert!(was_due, "{name} has not signed {body:?}, or it was carried out before");
        Ok(())
    }

    fn begin(&mut self, client: usize) {
        let (nonce, begin) = (self.nonce(), self.clients[client].begin());
        let challenge = match self.guard.admit(begin, super::at(self.now_ns), || Some(nonce)) {
            Ok(Admitted::Challenge(challenge)) => Some(challenge),
            _ => None,
        };
        self.clients[client].take(challenge);
    }

    fn sign(&mut self, client: usize, role: usize, is_lost: bool) -> Result<(), TestCaseError> {
        let Some(frame) = self.clients[client].sign(&body(role)) else { return Ok(()) };
        self.signed.insert((client as u8, frame.signature.to_vec(), frame.body.clone()));
        self.line.push(frame.clone());
        if is_lost { Ok(()) } else { self.send(&frame) }
    }

    fn change(&mut self, frame: &Signed, byte: usize, to: u8) -> Result<(), TestCaseError> {
        let mut bytes = RequestBody::Signed(frame.clone()).to_bytes();
        let place = byte % bytes.len();
        bytes[place] = to;
        match RequestBody::from_bytes(&bytes) {
            Ok(RequestBody::Signed(frame)) => self.send(&frame),
            _ => Ok(()),
        }
    }

    /// Returns a frame from the line.
    fn recorded(&self, number: usize) -> Option<Signed> {
        self.line.get(number % self.line.len().max(1)).cloned()
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Begin(client) => self.begin(client),
            Step::Sign { client, role, is_lost } => self.sign(client, role, is_lost)?,
            Step::Replay(frame) => self.recorded(frame).map_or(Ok(()), |frame| self.send(&frame))?,
            Step::Change { frame, byte, to } => {
                self.recorded(frame).map_or(Ok(()), |frame| self.change(&frame, byte, to))?;
            }
            Step::Plain(role) => prop_assert!(ask(&mut self.guard, body(role), self.now_ns, 0).is_err()),
            Step::Ask(number) => {
                let nonce = self.nonce();
                let begin = Signer::new(secret(number)).begin();
                let _ = self.guard.admit(begin, super::at(self.now_ns), || Some(nonce));
            }
            Step::Update => {
                self.guard = guard();
                self.guard.adopt(self.revoked.iter().map(|place| secret(*place as u8 + 1).public().bytes()));
            }
            Step::Revoke(place) => {
                self.guard.revoke(&ROLES[place].to_string()).expect("it is no last one");
                self.revoked.push(place);
            }
            Step::Wait(ns) => {
                self.now_ns += ns;
                self.guard.expire(self.now_ns);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_what_a_key_has_signed_acts_and_only_once(steps in prop::collection::vec(step(), 1..120)) {
        let clients = (1..=3).map(|number| Signer::new(secret(number))).collect();
        let (line, signed) = (Vec::new(), HashSet::new());
        let mut world = World { guard: guard(), clients, line, signed, revoked: Vec::new(), nonce: 0, now_ns: 0 };
        for step in steps {
            world.take(step)?;
        }
    }

    #[test]
    fn no_bytes_are_a_request_that_was_not_signed(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut guard = guard();
        super::client(&mut guard, 3, 0, 1);
        if let Ok(body) = RequestBody::from_bytes(&noise) {
            let admitted = ask(&mut guard, body, 0, 2);
            let is_harmless = matches!(admitted, Ok(Admitted::Challenge(_)) | Err(_));
            prop_assert!(is_harmless, "{admitted:?}");
        }
    }
}

#[test]
fn a_role_that_is_higher_includes_those_before_it() {
    assert!(Role::Read < Role::Operate && Role::Operate < Role::Update);
}
