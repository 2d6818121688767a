// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block: its size, and the bits beside its frame's address that state where it is.

/// Bytes of a block, and of its frame.
pub const BLOCK_BYTES: u64 = 2 << 20;

/// It has a frame.
pub(crate) const THERE: u64 = 1;
/// The guest has freed it, and does not see it any more.
pub(crate) const HIDDEN: u64 = 2;
pub(crate) const FLAGS: u64 = THERE | HIDDEN;
