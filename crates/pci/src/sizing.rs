// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lengths of a function's address ranges (PCI Local Bus 3.0, section 6.2.5.1): ones are written to each register, and
//! the bits that stay zero are the length. The function answers at wrong addresses meanwhile, so it must not decode:
//! only for a function that is about to be a guest's, and that has no user yet.

use core::fmt;

use arrayvec::ArrayVec;

use crate::bar::{MAX_BARS, Space};
use crate::{Bdf, ConfigWrite};

const COMMAND: u16 = 0x04;
const FIRST: u16 = 0x10;
/// Decoding of ports and of memory.
const DECODES: u32 = 0b11;
const IS_PORTS: u32 = 1 << 0;
const IS_64: u32 = 0b100;
const KIND_OF_MEMORY: u32 = 0b110;
const IS_PREFETCHABLE: u32 = 1 << 3;
const PORT_FLAGS: u32 = 0b11;
const MEMORY_FLAGS: u32 = 0b1111;

/// An address range with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizedBar {
    /// Which of the six registers it begins in.
    pub index: u8,
    /// Ports or memory.
    pub space: Space,
    /// Its first address, as firmware has placed it; 0 where it has not.
    pub address: u64,
    /// Its length: a power of two.
    pub bytes: u64,
}

/// Why a function's ranges cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizingError {
    /// It reads as ones: it is gone.
    Gone,
    /// Its register has a value that no range can have.
    Absurd {
        /// Which of the six.
        index: u8,
        /// The value read after ones were written.
        mask: u64,
    },
    /// It does not hold what is written to it.
    NotRestored {
        /// Which of the six.
        index: u8,
    },
}

impl fmt::Display for SizingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it does not answer any more"),
            Self::Absurd { index, mask } => {
                write!(f, "its base address register {index} reads {mask:#x} when ones are written, which is no length")
            }
            Self::NotRestored { index } => write!(f, "its base address register {index} does not hold its address"),
        }
    }
}

/// Finds out the ranges of an endpoint, which does not decode meanwhile. Registers are as before when it returns, also
/// with an error.
///
/// # Errors
/// [`SizingError`] for the first range that is not possible.
pub fn sizes(config: &mut dyn ConfigWrite, place: Bdf) -> Result<ArrayVec<SizedBar, MAX_BARS>, SizingError> {
    let command = config.read(place, COMMAND);
    if command == u32::MAX {
        return Err(SizingError::Gone);
    }
    config.write16(place, COMMAND, (command & !DECODES) as u16);
    let mut bars = ArrayVec::new();
    let mut index = 0;
    let mut sized = Ok(());
    while index < MAX_BARS && sized.is_ok() {
        let (found, registers) = measure(config, place, index);
        sized = found.map(|bar| bars.extend(bar));
        index += registers;
    }
    config.write16(place, COMMAND, command as u16);
    // One that has gone meanwhile reads as ranges of its own kind.
    if config.read(place, COMMAND) == u32::MAX { Err(SizingError::Gone) } else { sized.map(|()| bars) }
}

/// Measures the range that begins in a register, and how many registers it takes.
fn measure(config: &mut dyn ConfigWrite, place: Bdf, index: usize) -> (Result<Option<SizedBar>, SizingError>, usize) {
    let number = index as u8;
    let low = config.read(place, at(index));
    let is_wide = low & IS_PORTS == 0 && low & KIND_OF_MEMORY == IS_64;
    let registers = if is_wide { 2 } else { 1 };
    if is_wide && index + 1 == MAX_BARS {
        return (Err(SizingError::Absurd { index: number, mask: low.into() }), registers);
    }
    let high = if is_wide { config.read(place, at(index + 1)) } else { 0 };
    let ones = write_and_read(config, place, index, is_wide, (u32::MAX, u32::MAX));
    let again = write_and_read(config, place, index, is_wide, (low, high));
    if again != (low, high) {
        return (Err(SizingError::NotRestored { index: number }), registers);
    }
    (decode(number, (low, high), ones, is_wide), registers)
}

fn write_and_read(
    config: &mut dyn ConfigWrite,
    place: Bdf,
    index: usize,
    is_wide: bool,
    (low, high): (u32, u32),
) -> (u32, u32) {
    config.write32(place, at(index), low);
    if is_wide {
        config.write32(place, at(index + 1), high);
    }
    let high = if is_wide { config.read(place, at(index + 1)) } else { 0 };
    (config.read(place, at(index)), high)
}

fn decode(
    index: u8,
    (low, high): (u32, u32),
    (low_mask, high_mask): (u32, u32),
    is_wide: bool,
) -> Result<Option<SizedBar>, SizingError> {
    let is_ports = low & IS_PORTS != 0;
    let flags = if is_ports { PORT_FLAGS } else { MEMORY_FLAGS };
    if low_mask & !flags == 0 && (!is_wide || high_mask == 0) {
        return Ok(None);
    }
    let mask = u64::from(high_mask) << 32 | u64::from(low_mask & !flags);
    // A port's register may have only 16 bits; above its highest address bit a register may be zero.
    let upper = match (is_ports, is_wide) {
        (true, _) if mask >> 16 == 0 => !0xffff,
        (_, false) => !0xffff_ffff,
        _ => 0,
    };
    let bytes = (mask | upper).wrapping_neg();
    let is_possible = bytes.is_power_of_two() && bytes >= if is_ports { 4 } else { 16 } && (!is_ports || bytes <= 256);
    if !is_possible || low_mask & flags != low & flags {
        return Err(SizingError::Absurd { index, mask });
    }
    let is_prefetchable = low & IS_PREFETCHABLE != 0;
    let space = match (is_ports, is_wide) {
        (true, _) => Space::Ports,
        (false, true) => Space::Memory64 { is_prefetchable },
        (false, false) => Space::Memory32 { is_prefetchable },
    };
    let address = u64::from(high) << 32 | u64::from(low & !flags);
    Ok(Some(SizedBar { index, space, address, bytes }))
}

const fn at(index: usize) -> u16 {
    FIRST + 4 * index as u16
}

#[cfg(test)]
#[path = "sizing_tests.rs"]
mod tests;
