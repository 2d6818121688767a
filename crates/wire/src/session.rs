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

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{RequestBody, Role};

/// Bytes of a challenge.
pub const NONCE_BYTES: usize = 32;
/// The time in seconds after which a host forgets a session without a request.
pub const SESSION_IDLE_S: u32 = 120;
/// The first bytes of all that is signed for the control channel: no seal of an image or a bundle begins so.
const DOMAIN: &[u8; 16] = b"Baton control 1\0";

/// The answer to [`RequestBody::SessionBegin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The session's number.
    pub session: u32,
    /// Random bytes of this session alone.
    pub nonce: [u8; NONCE_BYTES],
}

/// A request within a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The session's number.
    pub session: u32,
    /// From 1; higher than that of each request before it in this session.
    pub sequence: u64,
    /// The two halves of the signature over [`statement`]: R and S.
    pub signature: [[u8; 32]; 2],
    /// The request, as [`RequestBody::to_bytes`] writes it.
    pub body: Vec<u8>,
}

/// A key that opens sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ControlKey {
    /// Its name: at most [`crate::MAX_NAME_BYTES`].
    pub name: String,
    /// The Ed25519 public key.
    pub key: [u8; 32],
    /// What it may do; `None`: nothing any more, it is revoked.
    pub role: Option<Role>,
    /// Sessions that it has open.
    pub sessions: u32,
}

/// Returns what the holder of `key` signs for a request in the session with this challenge.
pub fn statement(challenge: &Challenge, key: &[u8; 32], sequence: u64, body: &[u8]) -> Vec<u8> {
    let (session, sequence) = (challenge.session.to_le_bytes(), sequence.to_le_bytes());
    [&DOMAIN[..], &challenge.nonce, &session, key, &sequence, body].concat()
}

impl RequestBody {
    /// The request's bytes, to be signed.
    pub fn to_bytes(&self) -> Vec<u8> {
        // A request of this module's types has an encoding: postcard refuses only sequences of unknown length.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Reads a request; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((body, [])) => Some(body),
            _ => None,
        }
    }

    /// Returns whether it is a piece of a file. Pieces are not signed: [`RequestBody::UploadBegin`], which is, states
    /// the SHA-256 of the whole file, and a serial port's FIFO of 16 bytes does not wait for a signature's check.
    pub fn is_piece(&self) -> bool {
        matches!(self, Self::UploadData { .. } | Self::UploadPacked { .. })
    }
}
