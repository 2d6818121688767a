// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that open sessions, and the bytes of requests that are signed.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{RequestBody, Role};

/// A key that opens sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ControlKey {
    /// Its name: at most [`crate::MAX_NAME_BYTES`].
    pub name: String,
    /// The Ed25519 public key.
    pub key: [u8; 32],
    /// Its role; `None`: it is revoked.
    pub role: Option<Role>,
    /// Sessions that it has open.
    pub sessions: u32,
}

impl RequestBody {
    /// Returns the request's bytes, to be signed.
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
