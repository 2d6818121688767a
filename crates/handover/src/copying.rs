// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies into memory that may hold the same already: an image goes to where one has been before.

/// Bytes that are compared at a time.
pub(crate) const BLOCK_BYTES: usize = 256;

/// Copies as many bytes as both have, but for blocks in which none differs: where an image has run, most of the next
/// one is there already. An emulator keeps its translation of such code; QEMU's takes some 200 times as long for a
/// write to a page from which it has translated any.
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
