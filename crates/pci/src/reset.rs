// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resetting a function between two owners.
//!
//! | way | condition | source |
//! |---|---|---|
//! | function-level reset | its PCI Express capability has it | PCI Express Base 5.0, section 6.6.2 |
//! | the same of a function of conventional PCI | its Advanced Features capability has it | PCI Advanced Capabilities ECN |
//! | D3hot and back | its power management capability does not keep its state | PCI Power Management 1.2, section 5.4.1 |
//!
//! A function with none of these is reset with the bus on which it is ([`bus`]), and with it every function there.
//!
//! A reset takes a tenth of a second or more. It is a [`Procedure`] in short steps, between which the CPU does other
//! work; [`reset_in_place`] waits in between.

use core::fmt;

pub mod bus;
mod common;
mod kept;
mod procedure;

pub use self::common::ResetError;
use self::common::{COMMAND, DEVICE_CONTROL, QUIET};
pub use self::procedure::{Procedure, Progress};

use crate::capability::Capability;
use crate::{Bdf, ConfigWrite};

const MASTER: u16 = 1 << 2;
/// Header type, in the word's third byte.
const HEADER: u16 = 0x0c;
/// PCI Express: Device Capabilities, from the capability's register.
const DEVICE_CAPABILITIES: u16 = 0x04;
const HAS_FLR: u32 = 1 << 28;
/// Advanced Features: capabilities in the byte at 3, control at 4, status at 5.
const ADVANCED_FEATURES: u8 = 0x13;
const HAS_AF_FLR: u32 = 0b11 << 24;
const AF_CONTROL: u16 = 4;
/// Power management: control and status.
const POWER_CONTROL: u16 = 4;
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

/// The way to reset a function alone that has these capabilities; `None` if there is none. A capability whose registers
/// would lie past the end of configuration space is none.
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

/// Resets a function, which neither decodes, nor masters the bus, nor interrupts afterwards, and gives it what firmware
/// had chosen for it: addresses, the cache line's size, the interrupt line, and the settings of its PCI Express
/// capability. Takes up to 1.3 seconds, in which the caller's CPU waits; most functions take a tenth of one.
///
/// # Errors
/// [`ResetError`]: it must not be given to anybody.
pub fn reset_in_place(
    config: &mut dyn ConfigWrite,
    place: Bdf,
    way: Way,
    capabilities: &[Capability],
) -> Result<(), ResetError> {
    Procedure::begin(config, place, way, capabilities)?.finish(config)
}

/// Has a function make no more requests: it masters the bus no more, and uses no INTx. A bridge is left alone, as what
/// is behind it would stop, too. Does nothing where no function answers.
pub fn stop_mastering(config: &mut dyn ConfigWrite, place: Bdf) {
    let command = config.read(place, COMMAND);
    let header = (config.read(place, HEADER) >> 16) as u8 & 0x7f;
    if command != u32::MAX && header == 0 {
        config.write16(place, COMMAND, command as u16 & !MASTER | QUIET);
    }
}

#[cfg(test)]
#[path = "reset_tests.rs"]
mod tests;
