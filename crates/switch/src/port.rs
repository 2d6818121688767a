// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a port.

use alloc::vec::Vec;

use crate::mac::Mac;

/// The highest number of a VLAN (IEEE 802.1Q-2018, table 9-2).
pub const MAX_VLAN: u16 = 4094;

/// A port: where a guest's network device is plugged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The address of the device.
    pub mac: Mac,
    /// Its VLANs.
    pub vlans: Vlans,
    /// True if it exchanges frames with ports only that are not isolated.
    pub is_isolated: bool,
    /// True if it may send from other addresses than its own.
    pub is_trusted: bool,
}

/// The VLANs of a port. 0 is the network without tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vlans {
    /// Untagged frames, which belong to one VLAN.
    Access(u16),
    /// Tagged frames of these VLANs; of 0: untagged ones.
    Trunk(Vec<u16>),
}

impl Vlans {
    /// Returns whether frames of a VLAN come and go here.
    pub fn has(&self, vlan: u16) -> bool {
        match self {
            Self::Access(own) => *own == vlan,
            Self::Trunk(list) => list.contains(&vlan),
        }
    }

    /// Returns whether frames come and go with tags here.
    pub fn are_tagged(&self) -> bool {
        matches!(self, Self::Trunk(_))
    }

    /// Every one of them.
    pub fn all(&self) -> &[u16] {
        match self {
            Self::Access(vlan) => core::slice::from_ref(vlan),
            Self::Trunk(list) => list,
        }
    }
}
