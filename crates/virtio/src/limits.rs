// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of this implementation.

/// The most descriptors of a queue. The specification permits 32,768; a chain on a stack has as many segments.
pub const QUEUE_SIZE_MOST: u16 = 256;
/// The most segments of a chain.
pub const CHAIN_SEGMENTS: usize = QUEUE_SIZE_MOST as usize;
