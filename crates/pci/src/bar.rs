// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's address ranges (PCI Local Bus 3.0, section 6.2.5.1), as the firmware has placed them.
//!
//! A range's length shows only when ones are written to its register, and the function answers at a wrong address
//! meanwhile: a device that the host or the firmware uses at that moment (its UART, SMM) would be gone. Nothing needs a
//! length as long as no function is given to a guest, so nothing is written here.

use arrayvec::ArrayVec;

use crate::config::Registers;
use crate::problem::{Problem, Problems};

/// Ranges of an endpoint.
pub const MAX_BARS: usize = 6;
const FIRST: u16 = 0x10;
const PORTS: u32 = 0b1;
const PORT_KIND_BITS: u32 = 0b11;
const MEMORY_KIND_BITS: u32 = 0b1111;
const PREFETCHABLE: u32 = 0b1000;

/// Address space of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Ports.
    Ports,
    /// Memory below 4 GiB.
    Memory32 {
        /// Reading has no effect.
        is_prefetchable: bool,
    },
    /// Memory anywhere.
    Memory64 {
        /// Reading has no effect.
        is_prefetchable: bool,
    },
}

/// An address range that a function answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Index of its first register among the six.
    pub index: u8,
    /// Ports or memory.
    pub space: Space,
    /// Its first address.
    pub address: u64,
}

/// Reads the ranges of an endpoint. One without an address reads as one that does not exist, and is left out.
pub(crate) fn read_all(registers: &mut Registers<'_>, problems: &mut Problems) -> ArrayVec<Bar, MAX_BARS> {
    let mut bars = ArrayVec::new();
    let mut index = 0;
    while index < MAX_BARS {
        let first = registers.read(at(index));
        let is_64 = first & 0b111 == 0b100;
        if is_64 && index + 1 == MAX_BARS {
            problems.push(Problem::HalfRange { index: index as u8 });
            break;
        }
        let second = if is_64 { registers.read(at(index + 1)) } else { 0 };
        if first == u32::MAX {
            problems.push(Problem::Vanished);
            break;
        }
        bars.extend(decode(index as u8, first, second, is_64));
        index += if is_64 { 2 } else { 1 };
    }
    bars
}

fn decode(index: u8, first: u32, second: u32, is_64: bool) -> Option<Bar> {
    let is_prefetchable = first & PREFETCHABLE != 0;
    let (space, kind_bits) = match (first & PORTS != 0, is_64) {
        (true, _) => (Space::Ports, PORT_KIND_BITS),
        (false, true) => (Space::Memory64 { is_prefetchable }, MEMORY_KIND_BITS),
        (false, false) => (Space::Memory32 { is_prefetchable }, MEMORY_KIND_BITS),
    };
    let address = u64::from(first & !kind_bits) | u64::from(second) << 32;
    (address != 0).then_some(Bar { index, space, address })
}

const fn at(index: usize) -> u16 {
    FIRST + 4 * index as u16
}
