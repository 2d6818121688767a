// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versions of the record and of blocks.

/// The newest version that is written and read.
pub const VERSION: u32 = 4;
/// The oldest version that is written and read: the one before.
pub const OLDEST_VERSION: u32 = VERSION - 1;
