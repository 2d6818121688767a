// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control keys that were revoked while the host ran, in the record.

use crate::macros::plain;

/// The most [`RevokedKey`]s in a record.
pub const MAX_REVOKED: usize = 64;

plain! {
    /// A key of the control channel that an operator has revoked since the machine was reset. The bundle may list it
    /// still. A reader that does not know this would admit its holder: it refuses the record.
    pub struct RevokedKey since 4 {
        /// The Ed25519 public key.
        pub key: [u8; 32] as "bytes",
    }
}
