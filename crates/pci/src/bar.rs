// SPDX-License-Identifier: MIT OR Apache-2.0
//! A function's address ranges (PCI Local Bus 3.0, section 6.2.5.1).
//!
//! How long a range is shows only when ones are written to its register. Meanwhile the function would answer at a wrong address,
//! so its decoding, where it is on, is switched off before and back on after.

use arrayvec::ArrayVec;

use crate::config::Registers;
use crate::function::{Problem, Problems};

/// Ranges of an endpoint.
pub const MAX_BARS: usize = 6;
const COMMAND: u16 = 0x04;
const FIRST: u16 = 0x10;
/// Command bits: answer in port space, answer in memory space.
const DECODE: u32 = 0b11;
/// The command register's half of the word; the other half is the status, whose set bits a write of ones clears.
const COMMAND_HALF: u32 = 0xffff;

/// Where a range lies.
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
    /// Which of the six registers it begins in.
    pub index: u8,
    /// Ports or memory.
    pub space: Space,
    /// Its first address; 0 if the firmware gave it none.
    pub address: u64,
    /// Its length: a power of two.
    pub bytes: u64,
}

/// Sizes the ranges of an endpoint whose status and command have just been read.
pub(crate) fn read_all(
    registers: &mut Registers<'_>,
    status_and_command: u32,
    problems: &mut Problems,
) -> ArrayVec<Bar, MAX_BARS> {
    let mut bars = ArrayVec::new();
    let command = status_and_command & COMMAND_HALF;
    let is_decoding = command & DECODE != 0;
    if is_decoding {
        registers.write(COMMAND, command & !DECODE);
    }
    let mut index = 0;
    while index < MAX_BARS {
        let first = registers.read(at(index));
        let is_64 = first & 0b111 == 0b100;
        if is_64 && index + 1 == MAX_BARS {
            problems.push(Problem::HalfRange { index: index as u8 });
            break;
        }
        match size(registers, index, first, is_64) {
            Ok(bar) => bars.extend(bar),
            Err(problem) => problems.push(problem),
        }
        index += if is_64 { 2 } else { 1 };
    }
    if is_decoding {
        registers.write(COMMAND, command);
    }
    bars
}

fn size(registers: &mut Registers<'_>, index: usize, first: u32, is_64: bool) -> Result<Option<Bar>, Problem> {
    let low_mask = probe(registers, index, first);
    let is_ports = first & 1 != 0;
    let kind_bits = if is_ports { 0b11 } else { 0b1111 };
    let (mut address, mut mask) = (u64::from(first & !kind_bits), u64::from(low_mask & !kind_bits));
    if is_64 {
        let second = registers.read(at(index + 1));
        let high_mask = probe(registers, index + 1, second);
        address |= u64::from(second) << 32;
        mask |= u64::from(high_mask) << 32;
    } else if mask != 0 {
        // A range of ports may leave the upper half out (6.2.5.1).
        mask |= if is_ports { 0xffff_ffff_ffff_0000 } else { 0xffff_ffff_0000_0000 };
    }
    if mask == 0 {
        return Ok(None);
    }
    // The bits that can be written are the upper ones; what is left of the length is their complement and one.
    let bytes = (!mask).wrapping_add(1);
    if !bytes.is_power_of_two() || address & (bytes - 1) != 0 {
        return Err(Problem::AbsurdRange { index: index as u8 });
    }
    let is_prefetchable = first & 0b1000 != 0;
    let space = match (is_ports, is_64) {
        (true, _) => Space::Ports,
        (false, true) => Space::Memory64 { is_prefetchable },
        (false, false) => Space::Memory32 { is_prefetchable },
    };
    Ok(Some(Bar { index: index as u8, space, address, bytes }))
}

/// Which bits of a register can be written; it holds `value` before and after.
fn probe(registers: &mut Registers<'_>, index: usize, value: u32) -> u32 {
    registers.write(at(index), u32::MAX);
    let mask = registers.read(at(index));
    registers.write(at(index), value);
    mask
}

const fn at(index: usize) -> u16 {
    FIRST + 4 * index as u16
}
