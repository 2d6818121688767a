// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a function that decide which others it can reach without the IOMMU.

use crate::acs::Acs;
use crate::capability::Capability;
use crate::{Bdf, ConfigSpace, ConfigWrite, Function, Kind};

const HEADER: u16 = 0x0c;
const IS_MULTIFUNCTION: u32 = 1 << 23;
const BRIDGE_CLASS: u8 = 0x06;
const HOST_BRIDGE: u8 = 0x00;

/// The place of a function in the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A device, or what else is no bridge to a bus.
    Device,
    /// The host bridge: it sends nothing of its own, and does not affect the isolation of any function.
    HostBridge,
    /// A root port, or a switch's port.
    Port {
        /// The bus behind it.
        secondary: u8,
        /// Its kind.
        kind: PortKind,
    },
    /// A bridge to a bus of conventional PCI. Devices behind it share the bus and the bridge's requester identifier.
    Bridge {
        /// The bus behind it.
        secondary: u8,
    },
}

/// The kind of a PCI Express port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A port of the root complex.
    Root,
    /// A switch's port towards the root complex.
    Upstream,
    /// A switch's port towards a device.
    Downstream,
}

/// A function as isolation groups need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its address.
    pub place: Bdf,
    /// Its place in the topology.
    pub role: Role,
    /// True if it is one of several functions of a device. A virtual function (SR-IOV) is not.
    pub is_multifunction: bool,
    /// Its Access Control Services.
    pub acs: Option<Acs>,
}

impl Member {
    /// Reads what a function of the survey is, in up to 52 accesses.
    pub fn read(config: &mut dyn ConfigSpace, function: &Function) -> Self {
        let place = function.place;
        let express = function.capabilities.iter().find(|capability| capability.id == Capability::EXPRESS);
        let mut has_siblings = |place| {
            let header = config.read(place, HEADER);
            header != u32::MAX && header & IS_MULTIFUNCTION != 0
        };
        // The bit of function 0 is the one that counts; that of the others need not be set.
        let is_multifunction = has_siblings(place) || place.with_function(0).is_some_and(has_siblings);
        let acs = express.and_then(|_| Acs::read(config, place));
        Self { place, role: role(function, express), is_multifunction, acs }
    }

    /// Returns whether its Access Control Services decide about groups: a port's, or those of one function of several.
    pub fn decides(&self) -> bool {
        self.is_multifunction && self.role != Role::HostBridge || matches!(self.role, Role::Port { .. })
    }

    /// Enables its Access Control Services, where it has them; returns whether it isolates.
    pub fn enable_isolation(&mut self, config: &mut dyn ConfigWrite) -> bool {
        let place = self.place;
        self.acs.as_mut().is_some_and(|acs| acs.enable(config, place))
    }

    /// Returns whether all that it sends or passes on goes upwards.
    pub(super) fn isolates(&self) -> bool {
        self.acs.is_some_and(|acs| acs.isolates())
    }

    /// Returns the bus behind it.
    pub(super) fn secondary(&self) -> Option<(u16, u8)> {
        match self.role {
            Role::Port { secondary, .. } | Role::Bridge { secondary } => Some((self.place.segment, secondary)),
            Role::Device | Role::HostBridge => None,
        }
    }
}

fn role(function: &Function, express: Option<&Capability>) -> Role {
    let Kind::Bridge { secondary, .. } = function.kind else {
        let is_host_bridge = (function.identity.class, function.identity.subclass) == (BRIDGE_CLASS, HOST_BRIDGE);
        return if is_host_bridge { Role::HostBridge } else { Role::Device };
    };
    // Device/Port Type (PCI Express Base 5.0, section 7.5.3.2).
    let kind = match express.map(|capability| capability.flags >> 4 & 0xf) {
        Some(4) => PortKind::Root,
        Some(5) => PortKind::Upstream,
        Some(6) => PortKind::Downstream,
        _ => return Role::Bridge { secondary },
    };
    Role::Port { secondary, kind }
}
