// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways to reset a function alone.

use core::fmt;

use super::common::DEVICE_CONTROL;
use crate::capability::Capability;
use crate::{Bdf, ConfigWrite};

/// PCI Express: Device Capabilities, from the capability's register.
const DEVICE_CAPABILITIES: u16 = 0x04;
const HAS_FLR: u32 = 1 << 28;
/// Advanced Features: capabilities in the byte at 3, control at 4, status at 5.
pub(super) const ADVANCED_FEATURES: u8 = 0x13;
const HAS_AF_FLR: u32 = 0b11 << 24;
pub(super) const AF_CONTROL: u16 = 4;
/// Power management: control and status.
pub(super) const POWER_CONTROL: u16 = 4;
const NO_SOFT_RESET: u32 = 1 << 3;

/// A way to reset a function alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Function-level reset, by its PCI Express capability at this register.
    FunctionLevel(u8),
    /// By its Advanced Features capability.
    AdvancedFeatures(u8),
    /// By its power management capability: to D3hot and back.
    Power(u8),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FunctionLevel(_) => "function-level reset",
            Self::AdvancedFeatures(_) => "function-level reset (Advanced Features)",
            Self::Power(_) => "reset by D3hot",
        })
    }
}

/// Returns the way to reset a function alone that has these capabilities; `None` if there is none. A capability with
/// registers past the end of configuration space is ignored.
pub fn way(config: &mut dyn ConfigWrite, place: Bdf, capabilities: &[Capability]) -> Option<Way> {
    let mut has = |id: u8, offset: u16, bits: u32| {
        let bytes = if id == Capability::EXPRESS { DEVICE_CONTROL + 4 } else { AF_CONTROL + 4 };
        let capability = capabilities.iter().find(|capability| capability.id == id && capability.has_bytes(bytes))?;
        let word = config.read(place, u16::from(capability.register) + offset);
        (word != u32::MAX && word & bits == bits).then_some(capability.register)
    };
    let express = has(Capability::EXPRESS, DEVICE_CAPABILITIES, HAS_FLR).map(Way::FunctionLevel);
    let advanced = express.or_else(|| has(ADVANCED_FEATURES, 0, HAS_AF_FLR).map(Way::AdvancedFeatures));
    advanced.or_else(|| {
        let is_power =
            |known: &&Capability| known.id == Capability::POWER_MANAGEMENT && known.has_bytes(POWER_CONTROL + 4);
        let register = capabilities.iter().find(is_power)?.register;
        let control = config.read(place, u16::from(register) + POWER_CONTROL);
        (control & NO_SOFT_RESET == 0).then_some(Way::Power(register))
    })
}
