// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of networks between guests, as the host reports them.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The port of a guest's network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NetPort {
    /// The network.
    pub network: String,
    /// The most bytes of a packet there.
    pub mtu: u32,
    /// The guest.
    pub guest: String,
    /// The device's MAC address.
    #[serde(with = "serde_bytes")]
    pub mac: [u8; 6],
    /// True while the guest runs.
    pub is_up: bool,
    /// VLANs of its frames; 0: none.
    pub vlans: Vec<u16>,
    /// True if its frames have tags.
    pub is_tagged: bool,
    /// True if it exchanges frames only with ports that are not isolated.
    pub is_isolated: bool,
    /// True if it may send from other addresses than its own.
    pub is_trusted: bool,
    /// Other stations that have sent from it in the last five minutes.
    pub stations: u32,
    /// Frames that it has sent.
    pub sent: NetFrames,
    /// Frames that it has received.
    pub received: NetFrames,
    /// Frames that were dropped.
    pub drops: NetDrops,
}

/// Frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NetFrames {
    /// Their number.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Frames that were dropped at a port, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NetDrops {
    /// Sent: without a whole header.
    pub short: u64,
    /// Sent: longer than the network's.
    pub long: u64,
    /// Sent: from an address that is not the port's.
    pub source: u64,
    /// Sent: in a VLAN that is not the port's.
    pub vlan: u64,
    /// Sent: to an address that bridges do not forward.
    pub reserved: u64,
    /// Sent: to no port that may be reached.
    pub unreachable: u64,
    /// Sent: with a virtio-net header that makes no sense.
    pub malformed: u64,
    /// To be received: without a buffer of the guest's.
    pub full: u64,
    /// To be received: while the guest's driver did not.
    pub down: u64,
    /// To be received: not segmented, by a driver that takes no such frames.
    pub offload: u64,
}

impl NetDrops {
    /// Returns each reason with its number.
    pub fn by_reason(&self) -> [(&'static str, u64); 10] {
        [
            ("short", self.short),
            ("long", self.long),
            ("source", self.source),
            ("vlan", self.vlan),
            ("reserved", self.reserved),
            ("unreachable", self.unreachable),
            ("malformed", self.malformed),
            ("full", self.full),
            ("down", self.down),
            ("offload", self.offload),
        ]
    }

    /// Returns their total.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().fold(0, |sum, (_, drops)| sum.saturating_add(*drops))
    }
}
