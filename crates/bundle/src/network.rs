// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entries for networks and the devices on them.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// A network between guests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// Its name, unique in the bundle.
    pub name: String,
    /// The most bytes of a packet.
    pub mtu: u16,
}

/// A network device of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicConfig {
    /// The network's index in [`HostConfig::networks`](crate::HostConfig::networks).
    pub network: u32,
    /// Its MAC address, unique in its network.
    pub mac: [u8; 6],
    /// The most bytes of a packet; not more than the network's.
    pub mtu: u16,
    /// Its VLANs.
    pub vlans: NicVlans,
    /// True if it exchanges frames only with devices that are not isolated.
    pub is_isolated: bool,
    /// True if it may send from other addresses than its own.
    pub is_trusted: bool,
    /// Bytes that it may send in a second; `None`: as many as it can.
    pub rate_bytes_per_s: Option<u64>,
    /// Its pairs of queues, at most [`limits::QUEUE_PAIRS`](crate::limits::QUEUE_PAIRS).
    #[serde(default = "one_pair")]
    pub queue_pairs: u16,
}

/// Devices had one before they could have several.
fn one_pair() -> u16 {
    1
}

impl NicConfig {
    /// Returns a device on the first network, with nothing but an address.
    pub const fn with_mac(mac: [u8; 6]) -> Self {
        Self {
            network: 0,
            mac,
            mtu: 1500,
            vlans: NicVlans::Access(0),
            is_isolated: false,
            is_trusted: false,
            rate_bytes_per_s: None,
            queue_pairs: 1,
        }
    }
}

/// The VLANs of a network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NicVlans {
    /// It sends and receives untagged frames, which are in this VLAN; 0: the network's own.
    Access(u16),
    /// It sends and receives tagged frames of these VLANs; of 0: untagged ones.
    Trunk(Vec<u16>),
}

impl NicVlans {
    /// Returns all of them.
    pub fn all(&self) -> &[u16] {
        match self {
            Self::Access(vlan) => core::slice::from_ref(vlan),
            Self::Trunk(vlans) => vlans,
        }
    }
}
