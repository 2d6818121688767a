// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a connection, and its messages in flight.

use crate::handshake::Handshake;
use crate::wire;

/// The state of a connection.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One for each client.
pub(super) enum Link {
    /// There is none until this time.
    Down { until_ns: u64 },
    /// The stream connects.
    Opening { until_ns: u64 },
    /// Both sides negotiate.
    Negotiating { until_ns: u64, handshake: Handshake },
    /// Requests and replies.
    Up,
}

/// The request that is being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub tag: u16,
    /// Bytes of header and data that are sent.
    pub sent: u32,
}

/// The part of a reply that has arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reply {
    pub bytes: [u8; wire::REPLY_BYTES],
    pub got: usize,
}
