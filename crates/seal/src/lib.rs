// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that an image is whole, and by which key it is signed; and files that arrive in pieces, which must be whole,
//! too ([`Arrival`]).
//!
//! A *seal* stands behind an image in its file ([`layout`]): the image's length and SHA-256, and, where it is
//! signed, the signer's Ed25519 public key and the signature over both. A host that is given keys takes only images
//! that one of them has signed; a host without keys takes any image that is whole. Bundles can be sealed likewise
//! ([`judge_bundle`]). Images that are older than the host by their security version are refused unless the host
//! permits a downgrade ([`Floor`]).
//!
//! ```text
//! Seal::split(file) ──► image, seal ──► Check::step … step ──► digest ──► Seal::judge(digest, trust) ──► Origin or SealError
//!                                        bounded slices                    a signature or none
//! ```
//!
//! The same check is made in the tool (`baton image verify`), when a host stages an image, and, with
//! [`Verify::Sha256`], once more while guests are paused: [`Verify`] states when. SHA-256's rounds are behind
//! [`Compress`], so that a host that has instructions for them provides them; [`Portable`] always works. The rest
//! of SHA-256 is written once, here.
//!
//! Sources: FIPS 180-4 (SHA-256), RFC 8032 (Ed25519).
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

mod arrival;
mod check;
mod error;
mod floor;
mod hexadecimal;
mod key;
mod key_error;
mod layout;
mod policy;
mod sha256;
mod unpack;
mod version;

pub use arrival::{Announced, Arrival, ArrivalError, Packed};
pub use check::{Check, Origin, Trust, judge_bundle};
pub use error::SealError;
pub use floor::{Downgrade, Floor};
pub use key::{KeyId, PublicKey, SecretKey};
pub use key_error::KeyError;
pub use layout::{SEAL_BYTES, Seal, SealedKind};
pub use policy::{UnknownPolicy, Verify};
pub use sha256::{BLOCK_BYTES, Block, Compress, Digest, Portable, Sha256};
pub use unpack::{Corrupt, Unpacker, WINDOW_BYTES};
pub use version::SEAL_VERSION;

#[cfg(test)]
mod tests;
