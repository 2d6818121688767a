// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sessions that are open, and challenges that wait for their answer.

use alloc::vec::Vec;

use wire::{Challenge, NONCE_BYTES, SESSION_IDLE_S};

use crate::bounds::{CHALLENGE_S, MAX_CHALLENGES, MAX_SESSIONS};

const SECOND_NS: u64 = 1_000_000_000;

/// A session, or a challenge that is not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub challenge: Challenge,
    /// Place of its key.
    pub key: usize,
    /// The highest number so far; 0: the challenge is not answered.
    pub newest: u64,
    touched_ns: u64,
}

impl Session {
    fn is_open(&self) -> bool {
        self.newest > 0
    }

    fn ends_ns(&self) -> u64 {
        let seconds = if self.is_open() { SESSION_IDLE_S } else { CHALLENGE_S };
        self.touched_ns.saturating_add(u64::from(seconds) * SECOND_NS)
    }
}

/// All of them, those used last at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<Session>,
    last: u32,
}

impl Sessions {
    /// Adds a challenge for a key.
    pub fn challenge(&mut self, key: usize, nonce: [u8; NONCE_BYTES], now_ns: u64) -> Challenge {
        // 0 is the number of no session; after 2^32 of them the oldest numbers have long expired.
        self.last = self.last.checked_add(1).unwrap_or(1);
        let challenge = Challenge { session: self.last, nonce };
        self.all.push(Session { challenge, key, newest: 0, touched_ns: now_ns });
        self.bound(key, false, MAX_CHALLENGES);
        challenge
    }

    /// Returns the session of this number.
    pub fn find(&self, number: u32, now_ns: u64) -> Option<&Session> {
        self.all.iter().find(|session| session.challenge.session == number && session.ends_ns() > now_ns)
    }

    /// Notes a request with this number and a good signature.
    pub fn advance(&mut self, number: u32, sequence: u64, now_ns: u64) {
        let Some(at) = self.all.iter().position(|session| session.challenge.session == number) else { return };
        let session = self.all.remove(at);
        let key = session.key;
        self.all.push(Session { newest: sequence, touched_ns: now_ns, ..session });
        self.bound(key, true, MAX_SESSIONS);
    }

    /// Removes the expired ones; returns a key that has not answered a challenge, and how many.
    pub fn expire(&mut self, now_ns: u64) -> Option<(usize, u32)> {
        let is_over = |session: &Session| session.ends_ns() <= now_ns;
        let unanswered = self.all.iter().filter(|session| is_over(session) && !session.is_open());
        let result = unanswered.clone().next().map(|first| (first.key, unanswered.count() as u32));
        self.all.retain(|session| !is_over(session));
        result
    }

    /// Ends all of a key.
    pub fn end(&mut self, key: usize) {
        self.all.retain(|session| session.key != key);
    }

    /// Returns the number of sessions that a key has open.
    pub fn open_of(&self, key: usize) -> usize {
        self.all.iter().filter(|session| session.key == key && session.is_open()).count()
    }

    /// Keeps at most `most` of a key; the first in the list were used longest ago.
    fn bound(&mut self, key: usize, is_open: bool, most: usize) {
        let is_one = |session: &Session| session.key == key && session.is_open() == is_open;
        while self.all.iter().filter(|session| is_one(session)).count() > most {
            let Some(first) = self.all.iter().position(is_one) else { return };
            self.all.remove(first);
        }
    }
}
