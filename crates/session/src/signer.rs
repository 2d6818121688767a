// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client's end.

use core::fmt;

use seal::{KeyId, PublicKey, SecretKey};
use wire::{Challenge, RequestBody, Signed, statement};

/// A secret key and the session that it has begun.
#[derive(Clone)]
pub struct Signer {
    secret: SecretKey,
    public: PublicKey,
    session: Option<(Challenge, u64)>,
}

/// Nothing of the secret.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.session.map(|(challenge, _)| challenge.session);
        f.debug_struct("Signer").field("key", &self.public.id()).field("session", &session).finish_non_exhaustive()
    }
}

impl Signer {
    /// Returns a signer without a session.
    pub fn new(secret: SecretKey) -> Self {
        let public = secret.public();
        Self { secret, public, session: None }
    }

    /// Returns the identifier of the key, for people.
    pub fn id(&self) -> KeyId {
        self.public.id()
    }

    /// Returns the request for a challenge.
    pub fn begin(&self) -> RequestBody {
        RequestBody::SessionBegin { key: self.public.id().0 }
    }

    /// Takes the host's answer; `None`: there is no session.
    pub fn take(&mut self, challenge: Option<Challenge>) {
        self.session = challenge.map(|challenge| (challenge, 0));
    }

    /// Returns whether there is a session.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Signs a request, each time with a higher number; `None` without a session.
    pub fn sign(&mut self, body: &RequestBody) -> Option<Signed> {
        let (challenge, sequence) = self.session.as_mut()?;
        *sequence += 1;
        let body = body.to_bytes();
        let signature = self.secret.sign(&statement(challenge, &self.public.bytes(), *sequence, &body));
        Some(Signed { session: challenge.session, sequence: *sequence, signature, body })
    }
}
