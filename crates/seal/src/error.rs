// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why an image is not trusted.

use core::fmt;

use crate::hexadecimal::Hexadecimal;
use crate::key::KeyId;
use crate::sha256::Digest;
use crate::version::SEAL_VERSION;

/// The reason why an image is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// It has no seal.
    Missing,
    /// Its seal is of another version.
    OtherVersion(u32),
    /// Its seal cannot be: why.
    Malformed(&'static str),
    /// The image is longer or shorter than its seal states.
    OtherLength {
        /// Bytes by the seal.
        stated_bytes: u64,
        /// Bytes that are there.
        present_bytes: u64,
    },
    /// The image is another one than was sealed.
    OtherDigest {
        /// Digest in the seal.
        stated: Digest,
        /// Digest of the bytes.
        computed: Digest,
    },
    /// It is not signed, and the host requires one of its keys.
    Unsigned {
        /// Number of keys that the host has.
        keys: usize,
    },
    /// It is signed by another key.
    Untrusted {
        /// The signer's key.
        signer: KeyId,
        /// Number of keys that the host has.
        keys: usize,
    },
    /// The signature is not the signer's.
    BadSignature {
        /// The key that the seal claims to be signed by.
        signer: KeyId,
    },
}

impl SealError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing => "seal it with `baton image sign`, or build a bundle, which seals its image",
            Self::OtherVersion(_) => "use image and host of one release",
            Self::Malformed(_) | Self::OtherLength { .. } | Self::OtherDigest { .. } => {
                "copy the image again, or seal it again with `baton image sign`"
            }
            Self::Unsigned { .. } | Self::Untrusted { .. } => {
                "sign it with one of the host's keys, or add the key to [trust] keys in host.toml and boot with that \
                 bundle"
            }
            Self::BadSignature { .. } => "sign it again with `baton image sign`",
        }
    }

    /// Returns what to do about it where a bundle's seal is meant.
    pub fn hint_of_bundle(&self) -> &'static str {
        match self {
            Self::OtherVersion(_) => self.hint(),
            Self::Missing | Self::Unsigned { .. } | Self::Untrusted { .. } | Self::BadSignature { .. } => {
                "sign it with one of the host's keys: `baton bundle host.toml --sign KEY -o FILE`"
            }
            Self::Malformed(_) | Self::OtherLength { .. } | Self::OtherDigest { .. } => {
                "copy the bundle again, or build it again with `baton bundle`"
            }
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
            Self::Unsigned { keys } => write!(f, "it is not signed, and this host trusts {}", Keys(*keys)),
            Self::Untrusted { signer, keys } => {
                write!(f, "it is signed by {signer}, which this host does not trust (it trusts {})", Keys(*keys))
            }
            Self::BadSignature { signer } => write!(f, "its signature is not that of {signer}"),
        }
    }
}

impl core::error::Error for SealError {}

/// Enough of a digest to distinguish it from others.
fn head(digest: &Digest) -> Hexadecimal<4> {
    Hexadecimal("", [digest[0], digest[1], digest[2], digest[3]])
}

/// A number of keys, for messages.
struct Keys(usize);

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}
