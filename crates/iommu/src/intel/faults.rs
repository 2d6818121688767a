// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fault recording (chapter 7): a ring of records in the unit's registers, polled.

use pci::Bdf;

use crate::fault::{Access, Fault, FaultReason};
use crate::hardware::Registers;
use crate::intel::capabilities::Capabilities;
use crate::intel::registers::{
    COMPLETION_EVENT_CONTROL, EVENT_MASK, FAULT_EVENT_CONTROL, FAULT_OVERFLOW, FAULT_PENDING, FAULT_STATUS,
};

/// The record's upper half, and in that: the record is valid; cleared by writing 1.
const UPPER: u32 = 8;
const UPPERMOST: u32 = 12;
const VALID: u32 = 1 << 31;
/// Reasons from here up are of interrupts; as large a range is kept for them (section 7.1.3).
const INTERRUPTS: core::ops::Range<u8> = 0x20..0x30;

/// Masks the interrupts for recorded faults and completed commands: both are polled.
pub(super) fn mask_events(registers: &mut impl Registers) {
    registers.write32(FAULT_EVENT_CONTROL, EVENT_MASK);
    registers.write32(COMPLETION_EVENT_CONTROL, EVENT_MASK);
}

/// Takes the oldest record. Reads each at most once.
pub(super) fn next(registers: &mut impl Registers, capabilities: Capabilities, segment: u16) -> Option<Fault> {
    let status = registers.read32(FAULT_STATUS);
    if status == u32::MAX || status & (FAULT_PENDING | FAULT_OVERFLOW) == 0 {
        return None;
    }
    let count = capabilities.fault_records();
    let first = status >> 8 & 0xff;
    for index in (first..first + count).map(|index| index % count) {
        let at = capabilities.fault_record(index);
        let upper = registers.read64(at + UPPER);
        if upper >> 63 != 0 {
            let address = registers.read64(at);
            registers.write32(at + UPPERMOST, VALID);
            return Some(decode(segment, address, upper));
        }
    }
    // Faults that came while all records were in use are lost; from here on they are recorded again.
    registers.write32(FAULT_STATUS, FAULT_OVERFLOW);
    None
}

/// Decodes a record (section 9.9).
fn decode(segment: u16, lower: u64, upper: u64) -> Fault {
    let reason = (upper >> 32) as u8;
    let source = Bdf::of_requester(segment, upper as u16);
    if INTERRUPTS.contains(&reason) {
        return Fault { source, address: lower >> 48, access: Access::Interrupt, reason: reason_of(reason) };
    }
    let access = if upper >> 62 & 1 != 0 { Access::Read } else { Access::Write };
    Fault { source, address: lower & !0xfff, access, reason: reason_of(reason) }
}

/// Reasons of legacy mode and of interrupt remapping (section 7.1.3). Every page can be read, so that a read that is
/// refused met none; a refused write met a page that is read-only, or none.
const fn reason_of(number: u8) -> FaultReason {
    match number {
        // No root or context entry, an address beyond the tables, no page.
        0x1 | 0x2 | 0x4 | 0x6 => FaultReason::NotMapped,
        0x5 => FaultReason::NotAllowed,
        // A context entry, a table, or one of their bits.
        0x3 | 0x7..=0xc => FaultReason::BadTable(number),
        // Beyond the table, absent, in compatibility format, opened for another function.
        0x21 | 0x22 | 0x25 | 0x26 => FaultReason::NotOpened,
        0x23 | 0x24 => FaultReason::BadTable(number),
        _ => FaultReason::Other(number),
    }
}
