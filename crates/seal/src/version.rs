// SPDX-License-Identifier: MIT OR Apache-2.0
//! The version of the seal.

/// The version that is written and read.
pub const SEAL_VERSION: u32 = 1;
