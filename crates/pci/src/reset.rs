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

pub mod bus;
mod common;
mod kept;
mod procedure;
mod way;

pub use self::common::ResetError;
use self::common::{COMMAND, QUIET};
pub use self::procedure::{Procedure, Progress};
pub use self::way::{Way, way};

use crate::capability::Capability;
use crate::{Bdf, ConfigWrite};

const MASTER: u16 = 1 << 2;
/// Header type, in the word's third byte.
const HEADER: u16 = 0x0c;

/// Resets a function, which neither decodes, nor masters the bus, nor interrupts afterwards, and gives it what firmware
/// had chosen for it: addresses, the cache line's size, the interrupt line, and the settings of its PCI Express
/// capability. Takes up to 1.3 seconds, in which the caller's CPU waits; most functions take a tenth of one.
///
/// # Errors
/// [`ResetError`]: it must not be assigned to any guest.
pub fn reset_in_place(
    config: &mut dyn ConfigWrite,
    place: Bdf,
    way: Way,
    capabilities: &[Capability],
) -> Result<(), ResetError> {
    Procedure::begin(config, place, way, capabilities)?.finish(config)
}

/// Stops a function's requests: disables bus mastering and INTx. A bridge is left alone, as what
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
