// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys that open sessions, and the bytes of requests that are signed.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{RequestBody, Role};
use cbor::{Error, Full, Sink, Writer};

/// A key that opens sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ControlKey {
    /// Its name: at most [`crate::MAX_NAME_BYTES`].
    pub name: String,
    /// The Ed25519 public key.
    #[serde(with = "serde_bytes")]
    pub key: [u8; 32],
    /// Its role; `None`: it is revoked.
    pub role: Option<Role>,
    /// Sessions that it has open.
    pub sessions: u32,
}

impl RequestBody {
    /// Returns the request's bytes, to be signed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Bytes(Vec::new());
        // A request of this module's types has an encoding, and there is room for it.
        let _ = self.serialize(&mut Writer::new(&mut bytes));
        bytes.0
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The bytes are none, or one of a newer release.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        cbor::read(bytes)
    }

    /// Returns whether it is a piece of a file. Pieces are not signed: [`RequestBody::UploadBegin`], which is, states
    /// the SHA-256 of the whole file, and a serial port's FIFO of 16 bytes does not wait for a signature's check.
    pub fn is_piece(&self) -> bool {
        matches!(self, Self::UploadData { .. } | Self::UploadPacked { .. })
    }
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}
