// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seal's bytes: the last ones of an image's or a bundle's file.
//!
//! | from | bytes | content |
//! |---|---|---|
//! | 0 | 8 | length of the content before the seal |
//! | 8 | 32 | SHA-256 of the content |
//! | 40 | 32 | the signer's Ed25519 public key; zeroes: it is not signed |
//! | 72 | 64 | the signature over what [`Seal::statement`] states; zeroes likewise |
//! | 136 | 4 | length of the seal, 152 |
//! | 140 | 4 | version of the seal, [`SEAL_VERSION`] |
//! | 144 | 8 | `BatnSeal` behind an image, `BatnBndl` behind a bundle |
//!
//! The last 16 bytes are the same in every version, so that a seal of another one is distinguished from none. Numbers
//! are little endian.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::SealError;
use crate::key::{PublicKey, SecretKey};
use crate::sha256::{Digest, Portable, Sha256};
use crate::version::SEAL_VERSION;

/// Bytes of a seal.
pub const SEAL_BYTES: usize = size_of::<Seal>();
/// Bytes that a signature is over.
const STATEMENT_BYTES: usize = size_of::<Magic>() + 4 + 8 + 32;

/// The last bytes of a sealed file.
type Magic = [u8; 8];

/// Kind of the file that a seal is appended to. The signature covers it, so that a signed file of one kind never passes
/// for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedKind {
    /// An image of Baton.
    Image,
    /// A boot bundle.
    Bundle,
}

impl SealedKind {
    const fn magic(self) -> Magic {
        match self {
            Self::Image => *b"BatnSeal",
            Self::Bundle => *b"BatnBndl",
        }
    }
}

/// The seal at the end of an image or a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Seal {
    image_bytes: U64,
    digest: Digest,
    signer: [u8; 32],
    signature: [u8; 64],
    end: End,
}

/// The end of every version's seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct End {
    bytes: U32,
    version: U32,
    magic: Magic,
}

impl Seal {
    /// Returns the seal for `image`; signed where there is a key.
    pub fn of(image: &[u8], key: Option<&SecretKey>) -> Self {
        Self::of_kind(SealedKind::Image, image, key)
    }

    /// Returns the seal for content of this kind; signed where there is a key.
    pub fn of_kind(kind: SealedKind, content: &[u8], key: Option<&SecretKey>) -> Self {
        let mut hash = Sha256::new(Portable);
        hash.update(content);
        let end = End { bytes: U32::new(SEAL_BYTES as u32), version: U32::new(SEAL_VERSION), magic: kind.magic() };
        let image_bytes = U64::new(content.len() as u64);
        let mut seal = Self { image_bytes, digest: hash.finish(), signer: [0; 32], signature: [0; 64], end };
        if let Some(key) = key {
            seal.signer = key.public().bytes();
            seal.signature = key.sign(&seal.statement());
        }
        seal
    }

    /// Parts a file into its image and the seal behind it.
    ///
    /// # Errors
    /// There is no seal, or none that is understood.
    pub fn split(file: &[u8]) -> Result<(&[u8], &Self), SealError> {
        Self::split_kind(SealedKind::Image, file)
    }

    /// Parts a file into content of this kind and the seal behind it.
    ///
    /// # Errors
    /// There is no seal of this kind, or none that is understood.
    pub fn split_kind(kind: SealedKind, file: &[u8]) -> Result<(&[u8], &Self), SealError> {
        let (_, end) = End::ref_from_suffix(file).map_err(|_| SealError::Missing)?;
        if end.magic != kind.magic() {
            return Err(SealError::Missing);
        }
        if end.version.get() != SEAL_VERSION {
            return Err(SealError::OtherVersion(end.version.get()));
        }
        let (image, seal) =
            Self::ref_from_suffix(file).map_err(|_| SealError::Malformed("the file is shorter than it"))?;
        if end.bytes.get() as usize != SEAL_BYTES {
            return Err(SealError::Malformed("its own length is wrong"));
        }
        let (stated_bytes, present_bytes) = (seal.image_bytes.get(), image.len() as u64);
        if stated_bytes != present_bytes {
            return Err(SealError::OtherLength { stated_bytes, present_bytes });
        }
        Ok((image, seal))
    }

    /// Returns the image's digest in the seal.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the signer, as the seal names it.
    pub fn signer(&self) -> Option<PublicKey> {
        (self.signer != [0; 32]).then_some(PublicKey::from_bytes(self.signer))
    }

    /// Returns the signature; zeroes where there is none.
    pub(crate) fn signature(&self) -> &[u8; 64] {
        &self.signature
    }

    /// Returns what a signature is over: magic number, version, the image's length and digest.
    pub(crate) fn statement(&self) -> [u8; STATEMENT_BYTES] {
        let mut statement = [0; STATEMENT_BYTES];
        let parts = [self.end.magic.as_slice(), self.end.version.as_bytes(), self.image_bytes.as_bytes(), &self.digest];
        let mut rest = &mut statement[..];
        for part in parts {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        statement
    }
}
