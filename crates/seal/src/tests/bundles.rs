// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seals of bundles.

use std::vec::Vec;

use zerocopy::IntoBytes as _;

use super::key;
use crate::{Digest, Origin, Portable, Seal, SealError, SealedKind, SecretKey, Sha256, Trust, judge_bundle};

const BUNDLE: &[u8] = b"070701 a bundle";

fn sealed(kind: SealedKind, key: Option<&SecretKey>) -> Vec<u8> {
    [BUNDLE, Seal::of_kind(kind, BUNDLE, key).as_bytes()].concat()
}

fn digest(content: &[u8]) -> Digest {
    let mut hash = Sha256::new(Portable);
    hash.update(content);
    hash.finish()
}

fn judge(file: &[u8], trust: Trust<'_>) -> Result<Origin, SealError> {
    judge_bundle(file, digest, trust)
}

#[test]
fn a_host_without_keys_takes_a_bundle_with_or_without_a_seal() {
    assert_eq!(judge(BUNDLE, Trust::Any), Ok(Origin::Unsigned));
    assert_eq!(judge(&sealed(SealedKind::Bundle, None), Trust::Any), Ok(Origin::Unsigned));
    let signed = sealed(SealedKind::Bundle, Some(&key(1)));
    assert_eq!(judge(&signed, Trust::Any), Ok(Origin::Signed(key(1).public())));
}

#[test]
fn a_host_with_keys_takes_only_bundles_that_they_have_signed() {
    let keys = [key(1).public()];
    let trust = Trust::Keys(&keys);
    assert_eq!(judge(&sealed(SealedKind::Bundle, Some(&key(1))), trust), Ok(Origin::Signed(keys[0])));
    assert_eq!(judge(BUNDLE, trust), Err(SealError::Unsigned { keys: 1 }));
    assert_eq!(judge(&sealed(SealedKind::Bundle, None), trust), Err(SealError::Unsigned { keys: 1 }));
    let other = judge(&sealed(SealedKind::Bundle, Some(&key(2))), trust);
    assert_eq!(other, Err(SealError::Untrusted { signer: key(2).public().id(), keys: 1 }));
}

#[test]
fn an_images_seal_is_none_of_a_bundle_nor_the_reverse() {
    let keys = [key(1).public()];
    let as_image = sealed(SealedKind::Image, Some(&key(1)));
    assert_eq!(judge(&as_image, Trust::Keys(&keys)), Err(SealError::Unsigned { keys: 1 }));
    let as_bundle = sealed(SealedKind::Bundle, Some(&key(1)));
    assert_eq!(Seal::split(&as_bundle).map(drop), Err(SealError::Missing));
    // The kind is part of what is signed: renaming it voids the signature.
    let mut renamed = as_image;
    let magic = renamed.len() - 8;
    renamed[magic..].copy_from_slice(b"BatnBndl");
    assert_eq!(judge(&renamed, Trust::Keys(&keys)), Err(SealError::BadSignature { signer: keys[0].id() }));
}

#[test]
fn a_bundle_that_was_changed_is_refused_with_keys_and_without() {
    for key in [None, Some(key(1))] {
        let mut changed = sealed(SealedKind::Bundle, key.as_ref());
        changed[3] ^= 1;
        assert!(matches!(judge(&changed, Trust::Any), Err(SealError::OtherDigest { .. })));
    }
}
