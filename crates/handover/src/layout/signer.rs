// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signer of the new image in the record.

use crate::macros::plain;

plain! {
    /// The signer of the new image, as the one that hands over has checked it.
    pub struct Signer since 4 {
        /// The Ed25519 public key.
        pub key: [u8; 32] as "bytes",
    }
}
