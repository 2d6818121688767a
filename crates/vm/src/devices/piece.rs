// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of devices as the hand-over's structures.

use handover::Full;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::StateError;

/// Writes a structure to the start of `into`; returns its bytes.
///
/// # Errors
/// [`Full`] if it does not fit.
pub fn save(piece: &(impl IntoBytes + Immutable), into: &mut [u8]) -> Result<usize, Full> {
    let bytes = piece.as_bytes();
    into.get_mut(..bytes.len()).ok_or(Full)?.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// Reads a structure that is all of `from`.
///
/// # Errors
/// [`StateError`] of this field if the length is another.
pub fn read<T: FromBytes>(field: &'static str, from: &[u8]) -> Result<T, StateError> {
    T::read_from_bytes(from).map_err(|_| StateError { field, reason: "its state has another length" })
}
