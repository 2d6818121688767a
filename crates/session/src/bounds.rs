// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds of sessions.

/// Sessions of one key; the one that was used longest ago gives way.
pub const MAX_SESSIONS: usize = 4;
/// Challenges of one key that are not answered yet; the oldest gives way.
pub const MAX_CHALLENGES: usize = 4;
/// The time in seconds for the answer to a challenge: a slow line with its queue full takes eight.
pub const CHALLENGE_S: u32 = 30;
