// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feature bits that no device type owns (section 6).

/// Chains may end in a table of descriptors elsewhere (2.7.5.3).
pub const INDIRECT_DESC: u64 = 1 << 28;
/// Each side states the index at which it wants to be notified (2.7.7, 2.7.10).
pub const EVENT_IDX: u64 = 1 << 29;
/// The device is not a legacy one (6.1).
pub const VERSION_1: u64 = 1 << 32;
/// A driver may reset a single queue (2.6.1).
pub const RING_RESET: u64 = 1 << 40;
