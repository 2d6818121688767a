// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys as bytes and as text.
//!
//! A public key is written `ed25519:` and 64 hexadecimal digits, a secret one `ed25519-secret:` and 64. People report
//! keys apart by their first eight bytes ([`KeyId`]).

use core::fmt;
use core::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::hexadecimal::Hexadecimal;
use crate::key_error::KeyError;

const PUBLIC_PREFIX: &str = "ed25519:";
const SECRET_PREFIX: &str = "ed25519-secret:";

/// A public key that a host trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

/// The signer. Shown nowhere but in [`SecretKey::text`].
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

/// The beginning of a public key, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(pub [u8; 8]);

impl PublicKey {
    /// Returns a key of these bytes. Whether it is a point of the curve is found when a signature is checked with it.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }

    /// Returns what people call it.
    pub fn id(self) -> KeyId {
        let mut id = [0; 8];
        id.copy_from_slice(&self.0[..8]);
        KeyId(id)
    }

    /// Returns whether it can be one: a point of the curve, and no weak one.
    pub fn is_usable(self) -> bool {
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| !key.is_weak())
    }

    /// Returns whether `signature` is this key's over `statement` (RFC 8032, strictly). The first bytes of a statement
    /// state its kind, so that what is signed for one purpose serves no other.
    pub fn has_signed(self, statement: &[u8], signature: &[u8; 64]) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(statement, &Signature::from_bytes(signature)).is_ok())
    }
}

impl SecretKey {
    /// Returns the key made from 32 random bytes.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(seed)
    }

    /// Returns its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(SigningKey::from_bytes(&self.0).verifying_key().to_bytes())
    }

    /// Returns its text form.
    pub fn text(&self) -> impl fmt::Display + use<> {
        Hexadecimal(SECRET_PREFIX, self.0)
    }

    /// Signs a statement. Its first bytes state its kind ([`PublicKey::has_signed`]).
    pub fn sign(&self, statement: &[u8]) -> [u8; 64] {
        SigningKey::from_bytes(&self.0).sign(statement).to_bytes()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.starts_with(SECRET_PREFIX) {
            return Err(KeyError::Secret);
        }
        let key = Self(digits(text.strip_prefix(PUBLIC_PREFIX).ok_or(KeyError::NoPrefix)?)?);
        key.is_usable().then_some(key).ok_or(KeyError::Weak)
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        digits(text.strip_prefix(SECRET_PREFIX).ok_or(KeyError::NoSecretPrefix)?).map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hexadecimal(PUBLIC_PREFIX, self.0).fmt(f)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hexadecimal("", self.0).fmt(f)
    }
}

fn digits(text: &str) -> Result<[u8; 32], KeyError> {
    let bytes = text.trim_ascii_end().as_bytes();
    if bytes.len() != 64 || !bytes.iter().all(u8::is_ascii_hexdigit) {
        return Err(KeyError::BadDigits);
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
    }
    Ok(key)
}

/// Returns the value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => digit.to_ascii_lowercase().wrapping_sub(b'a').wrapping_add(10),
    }
}
