// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's end: which request is carried out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use seal::{KeyId, PublicKey};
use wire::{Challenge, ControlKey, NONCE_BYTES, RequestBody, Role, Signed, statement};

use crate::denied::Denied;
use crate::failures::Failures;
use crate::grant::Grant;
use crate::open::Sessions;

/// A control key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name for people.
    pub name: String,
    /// The key.
    pub key: PublicKey,
    /// The role of its holder; `None`: it is revoked.
    pub role: Option<Role>,
}

/// The treatment of requests that are not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// They are carried out, as on a host without control keys.
    Admitted,
    /// They are refused.
    Denied,
}

/// The moment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The host's time in nanoseconds.
    pub now_ns: u64,
    /// True while a file is being sent that a session with the role update has announced.
    pub is_receiving: bool,
}

/// The result of an admitted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// Carry it out; the name of the key that has signed it.
    Request(RequestBody, Option<String>),
    /// Answer with this: the beginning of a session.
    Challenge(Challenge),
}

/// A client has asked for challenges and has not answered them in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Name of the key that it has named.
    pub key: String,
    /// Number of its challenges.
    pub challenges: u32,
}

/// The control keys of a host, and their sessions.
#[derive(Clone, Debug)]
pub struct Guard {
    keys: Vec<Key>,
    plain: Plain,
    sessions: Sessions,
    failures: Failures,
}

impl Guard {
    /// Returns a guard without a session. Without keys every request is admitted.
    pub fn new(keys: Vec<Key>, plain: Plain) -> Self {
        let plain = if keys.is_empty() { Plain::Admitted } else { plain };
        Self { keys, plain, sessions: Sessions::default(), failures: Failures::new() }
    }

    /// Returns whether requests have to be signed.
    pub fn demands_sessions(&self) -> bool {
        self.plain == Plain::Denied
    }

    /// Decides on a request. `nonce`: random bytes for a challenge, or nothing where there are none.
    ///
    /// # Errors
    /// It is not to be carried out, and nothing has changed.
    pub fn admit(
        &mut self,
        body: RequestBody,
        moment: Moment,
        nonce: impl FnOnce() -> Option<[u8; NONCE_BYTES]>,
    ) -> Result<Admitted, Denied> {
        let is_open = self.plain == Plain::Admitted;
        self.decide(body, is_open, moment, nonce)
    }

    /// Decides on a request that comes from a guest. Where there are keys, one of them has to have signed it.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn admit_of_guest(
        &mut self,
        body: RequestBody,
        grant: &Grant,
        moment: Moment,
        nonce: impl FnOnce() -> Option<[u8; NONCE_BYTES]>,
    ) -> Result<Admitted, Denied> {
        let admitted = self.decide(body, self.keys.is_empty(), moment, nonce)?;
        if let Admitted::Request(body, _) = &admitted {
            grant.check(body)?;
        }
        Ok(admitted)
    }

    fn decide(
        &mut self,
        body: RequestBody,
        is_open: bool,
        moment: Moment,
        nonce: impl FnOnce() -> Option<[u8; NONCE_BYTES]>,
    ) -> Result<Admitted, Denied> {
        match body {
            RequestBody::SessionBegin { key } => self.begin(KeyId(key), moment.now_ns, nonce).map(Admitted::Challenge),
            RequestBody::Signed(signed) => {
                let (body, key) = self.check(&signed, moment.now_ns)?;
                Ok(Admitted::Request(body, Some(key)))
            }
            body if is_open => Ok(Admitted::Request(body, None)),
            body if body.is_piece() && moment.is_receiving => Ok(Admitted::Request(body, None)),
            _ => Err(Denied::NoSession),
        }
    }

    /// Removes expired sessions and challenges.
    pub fn expire(&mut self, now_ns: u64) -> Option<Unanswered> {
        let (key, challenges) = self.sessions.expire(now_ns)?;
        Some(Unanswered { key: self.keys.get(key)?.name.clone(), challenges })
    }

    /// Returns the keys that there are.
    pub fn list(&self) -> Vec<ControlKey> {
        let describe = |(place, key): (usize, &Key)| ControlKey {
            name: key.name.clone(),
            key: key.key.bytes(),
            role: key.role,
            sessions: self.sessions.open_of(place) as u32,
        };
        self.keys.iter().enumerate().map(describe).collect()
    }

    /// Takes a key's role away and ends its sessions. Returns the key; `None` if it had no role any more.
    ///
    /// # Errors
    /// No key has this name, or it is the last one that may revoke keys on a host that demands sessions.
    pub fn revoke(&mut self, name: &str) -> Result<Option<[u8; 32]>, Denied> {
        let Some(place) = self.keys.iter().position(|key| key.name == name) else {
            return Err(Denied::UnknownName(name.to_string()));
        };
        let is_update = |key: &Key| key.role == Some(Role::Update);
        let others = self.keys.iter().enumerate().filter(|(other, key)| *other != place && is_update(key)).count();
        if self.demands_sessions() && is_update(&self.keys[place]) && others == 0 {
            return Err(Denied::LastKey(name.to_string()));
        }
        Ok(self.take_role(place).then(|| self.keys[place].key.bytes()))
    }

    /// Revokes those of the keys that are among `revoked`, as an image before this one has.
    pub fn adopt(&mut self, revoked: impl Iterator<Item = [u8; 32]>) {
        for bytes in revoked {
            if let Some(place) = self.keys.iter().position(|key| key.key.bytes() == bytes) {
                self.take_role(place);
            }
        }
    }

    fn take_role(&mut self, place: usize) -> bool {
        self.sessions.end(place);
        self.keys[place].role.take().is_some()
    }

    fn begin(
        &mut self,
        id: KeyId,
        now_ns: u64,
        nonce: impl FnOnce() -> Option<[u8; NONCE_BYTES]>,
    ) -> Result<Challenge, Denied> {
        if self.keys.is_empty() {
            return Err(Denied::NoKeys);
        }
        let place = self.keys.iter().position(|key| key.key.id() == id).ok_or(Denied::UnknownKey(id))?;
        if self.keys[place].role.is_none() {
            return Err(Denied::Revoked(self.keys[place].name.clone()));
        }
        let nonce = nonce().ok_or(Denied::NoRandomNumbers)?;
        Ok(self.sessions.challenge(place, nonce, now_ns))
    }

    /// Returns the request in a signed one, and the name of its signer.
    fn check(&mut self, signed: &Signed, now_ns: u64) -> Result<(RequestBody, String), Denied> {
        let Signed { session, sequence, ref signature, ref body } = *signed;
        let found = self.sessions.find(session, now_ns).ok_or(Denied::UnknownSession)?;
        let (challenge, newest) = (found.challenge, found.newest);
        let Key { name, key, role } = &self.keys[found.key];
        if sequence <= newest {
            return Err(Denied::Replayed { key: name.clone(), sequence, newest });
        }
        if !self.failures.may_check(now_ns) {
            return Err(Denied::TooManyFailures);
        }
        if !key.has_signed(&statement(&challenge, &key.bytes(), sequence, body), signature) {
            self.failures.note();
            return Err(Denied::BadSignature(name.clone()));
        }
        self.sessions.advance(session, sequence, now_ns);
        let decided = admissible(name, *role, body);
        decided.map(|body| (body, name.clone()))
    }
}

/// Returns the request that a key has signed, if its role is enough.
fn admissible(name: &str, role: Option<Role>, body: &[u8]) -> Result<RequestBody, Denied> {
    let Some(has) = role else { return Err(Denied::Revoked(name.to_string())) };
    let body = RequestBody::from_bytes(body)
        .ok()
        .filter(|body| !matches!(body, RequestBody::SessionBegin { .. } | RequestBody::Signed(_)))
        .ok_or_else(|| Denied::NoRequest(name.to_string()))?;
    let needs = body.role();
    if has < needs { Err(Denied::Role { key: name.to_string(), has, needs }) } else { Ok(body) }
}
