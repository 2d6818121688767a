// SPDX-License-Identifier: MIT OR Apache-2.0
//! The base address registers of a physical function, and the sizes of their ranges (PCI Local Bus 3.0, section
//! 6.2.5.1). The function decodes nothing meanwhile.

use super::description::Range;
use super::physical::Physical;
use super::prober::Prober;
use super::problem::{Problem, Reason};
use crate::devices::pci::bar::{BARS, Bar, FIRST_BAR};

const IO: u32 = 0b1;
const WIDTH: u32 = 0b110;
const WIDE: u32 = 0b100;
const PREFETCHABLE: u32 = 0b1000;
const IO_FLAGS: u32 = 0b11;
const MEMORY_FLAGS: u32 = 0b1111;

/// Reads them all. Ports without an address are left out; memory without one is refused.
pub(super) fn read<P: Physical>(prober: &mut Prober<'_, P>) -> Result<[Option<Range>; BARS], Problem> {
    let mut ranges = [None; BARS];
    let mut index = 0;
    while index < BARS {
        let register = (FIRST_BAR + 4 * index) as u16;
        let range = read_one(prober, register, index + 1 == BARS)?;
        ranges[index] = range;
        index += range.map_or(1, |range| range.bar.registers());
    }
    Ok(ranges)
}

fn read_one<P: Physical>(prober: &mut Prober<'_, P>, register: u16, is_last: bool) -> Result<Option<Range>, Problem> {
    let first = prober.read(register)?;
    let (is_io, is_wide) = (first & IO != 0, first & (IO | WIDTH) == WIDE);
    if !is_io && !matches!(first & WIDTH, 0 | WIDE) {
        return Err(prober.problem(register, Reason::UnknownRange));
    }
    if is_wide && is_last {
        return Err(prober.problem(register, Reason::HalfRange));
    }
    let address = address_of(prober, register, is_wide);
    let mask = measured(prober, register, is_wide)?;
    if measured(prober, register, is_wide)? != mask {
        return Err(prober.problem(register, Reason::RangeChanges));
    }
    if address_of(prober, register, is_wide) != address {
        return Err(prober.problem(register, Reason::RangeMoves));
    }
    described(first, address, mask).map_err(|reason| prober.problem(register, reason))
}

fn address_of<P: Physical>(prober: &mut Prober<'_, P>, register: u16, is_wide: bool) -> u64 {
    let high = if is_wide { u64::from(prober.read_any(register + 4)) << 32 } else { 0 };
    high | u64::from(prober.read_any(register))
}

/// Reads back which bits can be written, with the flags, and restores the register.
fn measured<P: Physical>(prober: &mut Prober<'_, P>, register: u16, is_wide: bool) -> Result<u64, Problem> {
    let registers = [register, register + 4];
    let registers = &registers[..if is_wide { 2 } else { 1 }];
    let mut mask = if is_wide { 0 } else { u64::MAX << 32 };
    for (shift, register) in [0, 32].into_iter().zip(registers) {
        let before = prober.read_any(*register);
        prober.write(*register, u32::MAX);
        mask |= u64::from(prober.read_any(*register)) << shift;
        prober.write(*register, before);
    }
    if mask as u32 == u32::MAX { Err(prober.problem(register, Reason::Vanished)) } else { Ok(mask) }
}

/// The range that a register describes: by its flags and address, and by the bits that can be written.
fn described(first: u32, address: u64, mask: u64) -> Result<Option<Range>, Reason> {
    let (is_io, is_wide) = (first & IO != 0, first & (IO | WIDTH) == WIDE);
    let flags = if is_io { IO_FLAGS } else { MEMORY_FLAGS };
    if mask as u32 & flags != first & flags {
        return Err(Reason::RangeChanges);
    }
    let (mask, address) = (mask & !u64::from(flags), address & !u64::from(flags));
    if mask as u32 == 0 && (mask >> 32 == 0 || !is_wide) {
        return Ok(None);
    }
    // A function may have no more than the lower 16 bits of an address of ports.
    let mask = if is_io { mask | 0xffff_0000 } else { mask };
    let bytes = (!mask).checked_add(1).ok_or(Reason::RangeSize)?;
    let bar = match first & (IO | WIDTH | PREFETCHABLE) {
        kind if kind & IO != 0 => Bar::Io { ports: u16::try_from(bytes).map_err(|_| Reason::RangeSize)? },
        // A guest may use memory that can be prefetched as if it could not.
        0 | PREFETCHABLE => Bar::Memory32 { bytes: u32::try_from(bytes).map_err(|_| Reason::RangeSize)? },
        kind => Bar::Memory64 { bytes, is_prefetchable: kind & PREFETCHABLE != 0 },
    };
    if !bar.is_possible() {
        return Err(Reason::RangeSize);
    }
    let last = address.checked_add(bytes - 1).filter(|last| !is_io || *last <= u64::from(u16::MAX));
    match address {
        0 if is_io => Ok(None),
        0 => Err(Reason::RangeNotPlaced),
        _ if !address.is_multiple_of(bytes) || last.is_none() => Err(Reason::RangeNotPlaced),
        _ => Ok(Some(Range { bar, address })),
    }
}
