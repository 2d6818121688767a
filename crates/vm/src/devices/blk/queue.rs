// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue (section 5.2.2).

use nbd::REQUESTS as MOST;

/// The queue.
pub(super) const REQUESTS: u16 = 0;
/// As many as the client holds requests: a chain's number is its tag.
pub(super) const QUEUE_SIZES: &[u16] = &[MOST as u16];
