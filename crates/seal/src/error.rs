// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an image is not trusted, and why a text is no key.

use core::fmt;

use crate::key::{Hexadecimal, KeyId};
use crate::layout::SEAL_VERSION;
use crate::sha256::Digest;

/// Why an image is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// It has no seal.
    Missing,
    /// Its seal is of another version.
    OtherVersion(u32),
    /// Its seal cannot be: why.
    Malformed(&'static str),
    /// The image is longer or shorter than its seal says.
    OtherLength {
        /// Bytes as the seal says.
        stated_bytes: u64,
        /// Bytes that are there.
        present_bytes: u64,
    },
    /// The image is another one than was sealed.
    OtherDigest {
        /// What the seal says.
        stated: Digest,
        /// What the bytes come to.
        computed: Digest,
    },
    /// Nobody has signed it, and the host wants one of its keys.
    Unsigned {
        /// How many keys the host has.
        keys: usize,
    },
    /// Signed by somebody else.
    Untrusted {
        /// Who.
        signer: KeyId,
        /// How many keys the host has.
        keys: usize,
    },
    /// The signature is not the signer's.
    BadSignature {
        /// Whose it claims to be.
        signer: KeyId,
    },
}

impl SealError {
    /// What to do about it.
    pub fn mend(&self) -> &'static str {
        match self {
            Self::Missing => "seal it with `baton image sign`, or build a bundle, which seals its image",
            Self::OtherVersion(_) => "use image and host of one release",
            Self::Malformed(_) | Self::OtherLength { .. } | Self::OtherDigest { .. } => {
                "copy the image again, or seal it anew with `baton image sign`"
            }
            Self::Unsigned { .. } | Self::Untrusted { .. } => {
                "sign it with one of the host's keys, or add the key to [trust] keys in host.toml and boot with that bundle"
            }
            Self::BadSignature { .. } => "sign it anew with `baton image sign`",
        }
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it has no seal"),
            Self::OtherVersion(version) => {
                write!(f, "its seal has version {version}, and version {SEAL_VERSION} is read")
            }
            Self::Malformed(why) => write!(f, "its seal is damaged: {why}"),
            Self::OtherLength { stated_bytes, present_bytes } => {
                write!(f, "it has {present_bytes} bytes, and {stated_bytes} were sealed")
            }
            Self::OtherDigest { stated, computed } => {
                write!(f, "it is not what was sealed: its SHA-256 begins with {}, not {}", head(computed), head(stated))
            }
            Self::Unsigned { keys } => write!(f, "nobody has signed it, and this host trusts {}", Keys(*keys)),
            Self::Untrusted { signer, keys } => {
                write!(f, "it is signed by {signer}, whom this host does not trust (it trusts {})", Keys(*keys))
            }
            Self::BadSignature { signer } => write!(f, "its signature is not that of {signer}"),
        }
    }
}

impl core::error::Error for SealError {}

/// Enough of a digest to tell it from others.
fn head(digest: &Digest) -> Hexadecimal<4> {
    Hexadecimal("", [digest[0], digest[1], digest[2], digest[3]])
}

/// So many keys.
struct Keys(usize);

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// It does not begin as public keys do.
    NoPrefix,
    /// It does not begin as secret keys do.
    NoSecretPrefix,
    /// It is a secret key where a public one is wanted.
    Secret,
    /// What follows is not 64 hexadecimal digits.
    BadDigits,
    /// The bytes are no key of Ed25519, or one that anybody can sign for.
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
