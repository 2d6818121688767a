// SPDX-License-Identifier: MIT OR Apache-2.0
//! The check itself: an image is hashed in slices, and its seal judged by the digest.

use crate::error::SealError;
use crate::key::PublicKey;
use crate::layout::{Seal, SealedKind};
use crate::sha256::{Compress, Digest, Sha256};

/// An image that is being hashed. The caller that steps it states where its bytes are, and how many may be taken at a
/// time.
#[derive(Clone, Debug)]
pub struct Check<E> {
    hash: Sha256<E>,
    image_bytes: u64,
}

/// The signers that a host trusts.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Any signer: no key was given.
    Any,
    /// Only the holders of these keys.
    Keys(&'a [PublicKey]),
}

/// Origin of an image that is whole: its signer, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is not signed.
    Unsigned,
    /// This key has signed it.
    Signed(PublicKey),
}

impl<E: Compress> Check<E> {
    /// Begins a check of an image of `image_bytes` bytes.
    pub fn new(engine: E, image_bytes: u64) -> Self {
        Self { hash: Sha256::new(engine), image_bytes }
    }

    /// Returns the number of bytes hashed so far.
    pub fn bytes(&self) -> u64 {
        self.hash.bytes()
    }

    /// Takes at most `most_bytes` more; returns whether that was all. `bytes_at` shows some of the image's bytes from a
    /// place on, at least one; where it shows none, there is nothing more to take, and the digest will be another one
    /// than was sealed.
    pub fn step<'a>(&mut self, most_bytes: u64, mut bytes_at: impl FnMut(u64) -> &'a [u8]) -> bool {
        let end = self.image_bytes.min(self.hash.bytes().saturating_add(most_bytes));
        while self.hash.bytes() < end {
            let run = bytes_at(self.hash.bytes());
            let count = run.len().min((end - self.hash.bytes()) as usize);
            if count == 0 {
                return true;
            }
            self.hash.update(&run[..count]);
        }
        self.hash.bytes() == self.image_bytes
    }

    /// Returns the digest of the bytes so far.
    pub fn digest(self) -> Digest {
        self.hash.finish()
    }
}

impl Seal {
    /// Compares an image's digest, computed by any CPU, with the sealed one.
    ///
    /// # Errors
    /// It is another.
    pub fn compare(&self, digest: &Digest) -> Result<(), SealError> {
        if digest == self.digest() {
            return Ok(());
        }
        Err(SealError::OtherDigest { stated: *self.digest(), computed: *digest })
    }

    /// Returns whether an image of this digest may run.
    ///
    /// # Errors
    /// It is another image than the seal is for, or no trusted signer vouches for it.
    pub fn judge(&self, digest: &Digest, trust: Trust<'_>) -> Result<Origin, SealError> {
        self.compare(digest)?;
        let Some(signer) = self.signer() else { return self.judge_unsigned(trust) };
        if let Trust::Keys(keys) = trust
            && !keys.contains(&signer)
        {
            return Err(SealError::Untrusted { signer: signer.id(), keys: keys.len() });
        }
        match signer.has_signed(&self.statement(), self.signature()) {
            true => Ok(Origin::Signed(signer)),
            false => Err(SealError::BadSignature { signer: signer.id() }),
        }
    }

    fn judge_unsigned(&self, trust: Trust<'_>) -> Result<Origin, SealError> {
        if *self.signature() != [0; 64] {
            return Err(SealError::Malformed("it has a signature and no signer"));
        }
        match trust {
            Trust::Any => Ok(Origin::Unsigned),
            Trust::Keys(keys) => Err(SealError::Unsigned { keys: keys.len() }),
        }
    }
}

/// Judges a bundle's file by the seal behind it, which a bundle may lack where the host has no keys. `digest` returns
/// the SHA-256 of the content before the seal.
///
/// # Errors
/// The bundle is not what was sealed, or no trusted signer has signed it.
pub fn judge_bundle(file: &[u8], digest: impl FnOnce(&[u8]) -> Digest, trust: Trust<'_>) -> Result<Origin, SealError> {
    match (Seal::split_kind(SealedKind::Bundle, file), trust) {
        (Ok((content, seal)), _) => seal.judge(&digest(content), trust),
        (Err(SealError::Missing), Trust::Any) => Ok(Origin::Unsigned),
        (Err(SealError::Missing), Trust::Keys(keys)) => Err(SealError::Unsigned { keys: keys.len() }),
        (Err(error), _) => Err(error),
    }
}
