// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a text is no key.

use core::fmt;

/// The reason why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// It does not begin as public keys do.
    NoPrefix,
    /// It does not begin as secret keys do.
    NoSecretPrefix,
    /// It is a secret key where a public one is required.
    Secret,
    /// The rest is not 64 hexadecimal digits.
    BadDigits,
    /// The bytes are no key of Ed25519, or one for which a signature needs no secret.
    Weak,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPrefix => {
                "it is no public key; one is written ed25519: and 64 hexadecimal digits (`baton key show`)"
            }
            Self::NoSecretPrefix => "it is no secret key; `baton key new FILE` makes one",
            Self::Secret => {
                "it is a secret key; give the public one (`baton key show FILE`), and keep this to yourself"
            }
            Self::BadDigits => "it has not 64 hexadecimal digits; copy it again",
            Self::Weak => "these bytes are no key of Ed25519 that can be trusted; copy it again",
        })
    }
}

impl core::error::Error for KeyError {}
