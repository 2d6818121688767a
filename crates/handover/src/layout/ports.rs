// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports of networks between guests in the record.

use zerocopy::little_endian::{U32, U64};

use crate::macros::plain;

/// The most [`PortCounters`] in a record.
pub const MAX_PORTS: usize = 512;
/// Reasons for which a port drops frames.
pub const DROP_REASONS: usize = 10;

plain! {
    /// Traffic that has passed a port of a network between guests. A reader that does not know networks cannot go on
    /// with guests that are on one: it refuses the record.
    pub struct PortCounters since 4 {
        /// The network's place in the bundle.
        pub network: U32 as "number",
        /// The port's place in the network.
        pub port: U32 as "number",
        /// Frames that its guest has sent.
        pub sent_frames: U64 as "count",
        /// Their bytes.
        pub sent_bytes: U64 as "bytes",
        /// Frames that its guest has received.
        pub received_frames: U64 as "count",
        /// Their bytes.
        pub received_bytes: U64 as "bytes",
        /// Frames that were dropped, by reason: short, long, source, VLAN, reserved, unreachable, malformed, full,
        /// down, offload.
        pub drops: [U64; DROP_REASONS] as "count",
    }
}
