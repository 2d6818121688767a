// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number for a client, which a host cannot give.

use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a number that no other client of the host is likely to be near.
pub fn some_number() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Small enough for three bytes in a frame.
    (process::id().rotate_left(8) ^ now.subsec_nanos()) & ((1 << 20) - 1)
}
