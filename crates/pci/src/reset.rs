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

use core::fmt;

pub mod bus;
mod common;
mod kept;

pub use self::common::ResetError;
use self::common::{
    COMMAND, DEVICE_CONTROL, DRAIN_US, INITIATE_FLR, QUIET, READY_US, SETTLE_US, TRANSACTIONS_PENDING, is_ready, wait,
};
use self::kept::Kept;

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
const AF_PENDING: u32 = 1 << 8;
/// Power management: control and status.
const POWER_CONTROL: u16 = 4;
const NO_SOFT_RESET: u32 = 1 << 3;
const POWER_STATE: u16 = 0b11;

/// From D3hot to D0 (PCI Power Management 1.2, table 5-6).
const WAKE_US: u32 = 10_000;
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

/// Resets a function: it neither decodes, nor masters the bus, nor interrupts afterwards. Takes up to 1.3 seconds, in
/// which the caller's CPU waits; most functions take a tenth of one.
///
/// # Errors
/// [`ResetError`]: it must not be given to anybody.
pub fn reset(config: &mut dyn ConfigWrite, place: Bdf, way: Way) -> Result<(), ResetError> {
    if config.read(place, 0) == u32::MAX {
        return Err(ResetError::Gone);
    }
    config.write16(place, COMMAND, QUIET);
    match way {
        Way::FunctionLevel(register) => {
            let control = u16::from(register) + DEVICE_CONTROL;
            let is_drained = |config: &mut dyn ConfigWrite| config.read(place, control) & TRANSACTIONS_PENDING == 0;
            wait(config, DRAIN_US, is_drained);
            let value = config.read(place, control) as u16;
            config.write16(place, control, value | INITIATE_FLR);
            wait(config, SETTLE_US, |_| false);
        }
        Way::AdvancedFeatures(register) => {
            let control = u16::from(register) + AF_CONTROL;
            wait(config, DRAIN_US, |config| config.read(place, control) & AF_PENDING == 0);
            config.write8(place, control, 1);
            wait(config, SETTLE_US, |_| false);
        }
        Way::Power(register) => {
            let control = u16::from(register) + POWER_CONTROL;
            for state in [POWER_STATE, 0] {
                config.write16(place, control, state);
                wait(config, WAKE_US, |_| false);
            }
        }
    }
    if !wait(config, READY_US, |config| is_ready(config, place)) {
        return Err(ResetError::NotReady);
    }
    config.write16(place, COMMAND, QUIET);
    Ok(())
}

/// Resets a function as [`reset`] does, and gives it what firmware had chosen for it: addresses, the cache line's size,
/// the interrupt line, and the settings of its PCI Express capability.
///
/// # Errors
/// As [`reset`]'s.
pub fn reset_in_place(
    config: &mut dyn ConfigWrite,
    place: Bdf,
    way: Way,
    capabilities: &[Capability],
) -> Result<(), ResetError> {
    let kept = Kept::read(config, place, capabilities);
    reset(config, place, way)?;
    kept.write(config);
    Ok(())
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
