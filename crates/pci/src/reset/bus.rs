// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reset of a bus by the bridge above it (PCI-to-PCI Bridge 1.2, section 3.2.5.18; PCI Express Base 5.0, section
//! 6.6.1: a hot reset), for functions that cannot be reset alone. It resets every function behind the bridge.

use alloc::vec::Vec;
use core::fmt;

use super::common::{COMMAND, DRAIN_US, QUIET, READY_US, RECOVERY_US, ResetError, is_ready, wait};
use super::kept::Kept;
use crate::capability::Capability;
use crate::{Bdf, ConfigWrite, Function, Kind};

/// Bridge Control, and its bit Secondary Bus Reset.
const BRIDGE_CONTROL: u16 = 0x3e;
const SECONDARY_BUS_RESET: u16 = 1 << 6;
/// Link Capabilities and Link Status (in the upper half of Link Control's word), from the capability's register.
const LINK_CAPABILITIES: u16 = 0x0c;
const REPORTS_LINK: u32 = 1 << 20;
const LINK_STATUS: u16 = 0x10;
const IS_LINK_ACTIVE: u32 = 1 << 29;

/// Time for which the reset is asserted: at least a millisecond (PCI Local Bus 3.0, section 4.3.2; PCI Express Base
/// 5.0, section 6.6.1).
const ASSERT_US: u32 = 2_000;
/// The longest time for a link to be up again (section 6.6.1: a second).
const LINK_US: u32 = 1_000_000;

/// The functions that a bridge resets together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusReset {
    bridge: Bdf,
    /// Link registers of a bridge that states whether its link is up: its PCI Express capability.
    link: Option<u16>,
    functions: Vec<(Bdf, Vec<Capability>)>,
}

/// The reason for which a bus cannot be reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBusReset {
    /// No bridge is above it.
    RootBus,
    /// Two bridges lead to it.
    Ambiguous(Bdf, Bdf),
    /// This is no device, and would lose what firmware has programmed into it.
    Behind(Bdf),
}

impl fmt::Display for NoBusReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootBus => f.write_str("its bus has no bridge that resets it"),
            Self::Ambiguous(one, other) => write!(f, "the bridges {one} and {other} both lead to its bus"),
            Self::Behind(place) => write!(f, "the bridge {place} would be reset with its bus"),
        }
    }
}

impl BusReset {
    /// Returns the reset of the bus on which `place` is, in a machine with these functions.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn of(functions: &[Function], place: Bdf) -> Result<Self, NoBusReset> {
        let leads_here = |function: &&Function| {
            function.place.segment == place.segment
                && matches!(function.kind, Kind::Bridge { secondary, .. } if secondary == place.bus && secondary != 0)
        };
        let mut bridges = functions.iter().filter(leads_here);
        let bridge = bridges.next().ok_or(NoBusReset::RootBus)?;
        if let Some(other) = bridges.next() {
            return Err(NoBusReset::Ambiguous(bridge.place, other.place));
        }
        let behind = functions.iter().filter(|function| is_behind(bridge, function.place));
        let devices = behind.map(|function| match function.kind {
            Kind::Endpoint { .. } => Ok((function.place, function.capabilities.to_vec())),
            Kind::Bridge { .. } | Kind::Other(_) => Err(NoBusReset::Behind(function.place)),
        });
        let express = bridge
            .capabilities
            .iter()
            .find(|capability| capability.id == Capability::EXPRESS && capability.has_bytes(LINK_STATUS + 4));
        let link = express.map(|capability| capability.register.into());
        Ok(Self { bridge: bridge.place, link, functions: devices.collect::<Result<_, _>>()? })
    }

    /// Returns the functions that it resets.
    pub fn functions(&self) -> impl Iterator<Item = Bdf> {
        self.functions.iter().map(|(place, _)| *place)
    }

    /// Resets the bus of function `place`; every function on it has afterwards what firmware had chosen for it, and
    /// neither decodes, nor masters the bus, nor interrupts. Takes up to 2.3 seconds, in which the caller's CPU waits.
    ///
    /// # Errors
    /// [`ResetError`] of `place`, which must not be assigned to any guest. Others that do not come back stay as they
    /// are.
    pub fn reset(&self, config: &mut dyn ConfigWrite, place: Bdf) -> Result<(), ResetError> {
        if config.read(place, 0) == u32::MAX {
            return Err(ResetError::Gone);
        }
        let keep = |(place, capabilities): &(Bdf, Vec<Capability>)| Kept::read(config, *place, capabilities);
        let kept: Vec<Kept> = self.functions.iter().map(keep).collect();
        self.functions().for_each(|place| config.write16(place, COMMAND, QUIET));
        wait(config, DRAIN_US, |config| kept.iter().all(|kept| kept.is_drained(config)));
        let control = (config.read(self.bridge, BRIDGE_CONTROL & !3) >> 16) as u16;
        config.write16(self.bridge, BRIDGE_CONTROL, control | SECONDARY_BUS_RESET);
        wait(config, ASSERT_US, |_| false);
        config.write16(self.bridge, BRIDGE_CONTROL, control & !SECONDARY_BUS_RESET);
        self.wait_for_link(config);
        wait(config, RECOVERY_US, |_| false);
        if !wait(config, READY_US, |config| is_ready(config, place)) {
            return Err(ResetError::NotReady);
        }
        for kept in &kept {
            if !is_ready(config, kept.place) {
                continue;
            }
            config.write16(kept.place, COMMAND, QUIET);
            kept.write(config);
        }
        Ok(())
    }

    fn wait_for_link(&self, config: &mut dyn ConfigWrite) {
        let Some(express) = self.link else { return };
        if config.read(self.bridge, express + LINK_CAPABILITIES) & REPORTS_LINK != 0 {
            wait(config, LINK_US, |config| config.read(self.bridge, express + LINK_STATUS) & IS_LINK_ACTIVE != 0);
        }
    }
}

fn is_behind(bridge: &Function, place: Bdf) -> bool {
    let Kind::Bridge { secondary, subordinate } = bridge.kind else { return false };
    place.segment == bridge.place.segment && (secondary..=subordinate.max(secondary)).contains(&place.bus)
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
