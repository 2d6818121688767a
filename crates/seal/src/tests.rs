// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of seals, keys and digests.

mod arrivals;
mod bundles;
mod digests;
mod floors;
mod keys;
mod seals;
mod unpacking;

use std::vec::Vec;

use zerocopy::IntoBytes as _;

use crate::{Check, Origin, Portable, Seal, SealError, SecretKey, Trust};

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

/// Returns an image with a seal behind it.
fn sealed(image: &[u8], key: Option<&SecretKey>) -> Vec<u8> {
    [image, Seal::of(image, key).as_bytes()].concat()
}

/// Checks a whole file, in slices of `slice_bytes` bytes.
fn check_in(slice_bytes: u64, file: &[u8], trust: Trust<'_>) -> Result<Origin, SealError> {
    let (image, seal) = Seal::split(file)?;
    let mut check = Check::new(Portable, image.len() as u64);
    while !check.step(slice_bytes, |at| &image[at as usize..]) {}
    seal.judge(&check.digest(), trust)
}

fn check(file: &[u8], trust: Trust<'_>) -> Result<Origin, SealError> {
    check_in(u64::MAX, file, trust)
}
