// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies into memory that may hold the same already: an image goes to where one has been before.

/// Bytes that are compared at a time.
pub(crate) const BLOCK_BYTES: usize = 256;

/// Copies `from` to the start of `into`, as far as both reach, but for blocks that are the same. Where an image has
/// run, an equal one is nearly all there; and a write to a page from which an emulator has translated code is slow,
/// since it drops the translation.
pub fn copy_changed(into: &mut [u8], from: &[u8]) {
    let bytes = into.len().min(from.len());
    let blocks = into[..bytes].chunks_mut(BLOCK_BYTES).zip(from[..bytes].chunks(BLOCK_BYTES));
    for (into, from) in blocks.filter(|(into, from)| into != from) {
        into.copy_from_slice(from);
    }
}

#[cfg(test)]
#[path = "copying_tests.rs"]
mod tests;
