// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that are signed, for a host that has control keys.
//!
//! ```text
//! tool ── SessionBegin { key } ──► host          the key's first eight bytes
//! tool ◄── Challenge { session, nonce } ── host  32 random bytes that the host sends once
//! tool ── Signed { session, 1, signature, body } ──► host ── the body's answer
//! tool ── Signed { session, 2, signature, body } ──► host
//! ```
//!
//! A signature is Ed25519's (RFC 8032) over [`statement`]. Numbers in a session rise strictly; some may be missing,
//! since a line may lose frames. The number of a [`crate::Request`], by which its answer is found, is not signed: what
//! shares a line among clients changes it.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Bytes of a challenge.
pub const NONCE_BYTES: usize = 32;
/// The time in seconds after which a host drops a session without a request.
pub const SESSION_IDLE_S: u32 = 120;
/// The first bytes of all that is signed for the control channel: no seal of an image or a bundle begins so.
const DOMAIN: &[u8; 16] = b"Baton control 1\0";

/// The answer to [`crate::RequestBody::SessionBegin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The session's number.
    pub session: u32,
    /// Random bytes of this session alone.
    #[serde(with = "serde_bytes")]
    pub nonce: [u8; NONCE_BYTES],
}

/// A request within a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The session's number.
    pub session: u32,
    /// From 1; higher than that of each request before it in this session.
    pub sequence: u64,
    /// The signature over [`statement`].
    #[serde(with = "serde_bytes")]
    pub signature: [u8; 64],
    /// The request, as [`crate::RequestBody::to_bytes`] writes it.
    #[serde(with = "serde_bytes")]
    pub body: Vec<u8>,
}

/// Returns what the holder of `key` signs for a request in the session with this challenge.
pub fn statement(challenge: &Challenge, key: &[u8; 32], sequence: u64, body: &[u8]) -> Vec<u8> {
    let (session, sequence) = (challenge.session.to_le_bytes(), sequence.to_le_bytes());
    [&DOMAIN[..], &challenge.nonce, &session, key, &sequence, body].concat()
}
