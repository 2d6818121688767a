// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions with hosts that take signed requests.
//!
//! A session ends with the image that began it, and when it is not used: the client begins another one by itself. A
//! request that was refused for want of one is repeated then, if it may be carried out twice. Any other is reported as
//! refused: that refusal may be forged on the line, to have an order signed twice.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use seal::SecretKey;
use session::Signer;
use wire::{Refusal, RefusalCode, ReplyBody, RequestBody, SESSION_IDLE_S};

use super::{Client, Unreachable, some_number, unexpected};
use crate::connection::{self, Address};

/// Longest time for the answer to the first request.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// Another session is begun after this part of the time after which the host drops one, or a challenge.
const RENEWAL: Duration = Duration::from_secs(SESSION_IDLE_S as u64 / 2);
const RENEWAL_OF_CHALLENGE: Duration = Duration::from_secs(session::CHALLENGE_S as u64 / 2);

/// A key, and the state of its session.
pub(super) struct Signing {
    signer: Signer,
    /// The time from which on another session is begun before the next request.
    renewed_at: Instant,
    /// True if the host's image does not know the request for a session.
    is_unknown_there: bool,
}

impl Signing {
    fn new(key: SecretKey) -> Self {
        Self { signer: Signer::new(key), renewed_at: Instant::now(), is_unknown_there: false }
    }
}

impl Client {
    /// Connects to the host at an address, and begins a session there with a key. A host without a broker is asked to
    /// send nothing unasked any more: it may still do so for an earlier client.
    ///
    /// # Errors
    /// There is no line, or the host does not answer, or it refuses the key.
    pub fn reach(address: &Address, key: Option<SecretKey>) -> Result<Self> {
        let line = connection::open(address).map_err(|error| match error.is::<Refusal>() {
            // A service that refuses this client.
            true => error,
            false => Unreachable(format!("{error:#}")).into(),
        })?;
        let mut client = Self::on(line);
        let is_shared = matches!(address, Address::Lab(_));
        if !is_shared {
            // Answers to an earlier client may still be on the line.
            (client.last_id, client.address) = (some_number(), Some(address.clone()));
        }
        if address.is_below() {
            client.pack_nothing();
        }
        client.sign_with(key)?;
        if !is_shared {
            // Cancels all subscriptions; the answer shows that the host is there.
            let body = RequestBody::Subscribe(wire::Subscription::default());
            client.request_within(GREETING_TIMEOUT, body)?;
        }
        Ok(client)
    }

    /// Begins a session with a key; requests are signed from then on, if the host takes signed ones.
    ///
    /// # Errors
    /// The host refuses the key, or does not answer.
    pub fn sign_with(&mut self, key: Option<SecretKey>) -> Result<()> {
        self.signing = key.map(Signing::new);
        if self.signing.is_some() { self.begin_session() } else { Ok(()) }
    }

    /// Returns whether a key was given and the host's image, of an earlier release, knows no sessions.
    pub fn is_unsigned_there(&self) -> bool {
        self.signing.as_ref().is_some_and(|signing| signing.is_unknown_there)
    }

    /// Returns a request as it is sent: signed, if there is a session.
    pub(super) fn as_sent(&mut self, body: RequestBody) -> Result<RequestBody> {
        let is_plain = body.is_piece() || matches!(body, RequestBody::SessionBegin { .. });
        let is_due = |signing: &Signing| signing.signer.has_session() && Instant::now() >= signing.renewed_at;
        if !is_plain && self.signing.as_ref().is_some_and(is_due) {
            self.begin_session()?;
        }
        let Some(signing) = self.signing.as_mut().filter(|_| !is_plain) else { return Ok(body) };
        signing.renewed_at = Instant::now() + RENEWAL;
        Ok(signing.signer.sign(&body).map_or(body, RequestBody::Signed))
    }

    /// Returns whether this refusal asks for a session, and there is a key for one.
    pub(super) fn may_begin_again(&self, refusal: &Refusal) -> bool {
        refusal.code == RefusalCode::Protocol && self.signing.is_some()
    }

    /// Begins a session, in place of the one there was.
    pub(super) fn begin_session(&mut self) -> Result<()> {
        let Some(signing) = &mut self.signing else { return Ok(()) };
        signing.signer.take(None);
        let begin = signing.signer.begin();
        let (challenge, is_unknown_there) = match self.request_within(GREETING_TIMEOUT, begin) {
            Ok(ReplyBody::Challenge(challenge)) => (Some(challenge), false),
            Ok(other) => bail!(unexpected(&other)),
            Err(error) => match error.downcast_ref::<Refusal>().map(|refusal| refusal.code) {
                // It has no control keys, or has ended: it reports that itself where it matters.
                Some(RefusalCode::Invalid | RefusalCode::Failed) => (None, false),
                Some(RefusalCode::Protocol) => (None, true),
                _ => return Err(error),
            },
        };
        if let Some(signing) = &mut self.signing {
            signing.signer.take(challenge);
            signing.renewed_at = Instant::now() + RENEWAL_OF_CHALLENGE;
            signing.is_unknown_there = is_unknown_there;
        }
        Ok(())
    }
}
