// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers by offset, with the bits used (section 11.4), and the global command register's protocol.

use crate::hardware::{Registers, wait_for};
use crate::problem::Problem;

pub(super) const VERSION: u32 = 0x00;
pub(super) const CAPABILITY: u32 = 0x08;
pub(super) const EXTENDED_CAPABILITY: u32 = 0x10;
pub(super) const GLOBAL_COMMAND: u32 = 0x18;
pub(super) const GLOBAL_STATUS: u32 = 0x1c;
pub(super) const ROOT_TABLE: u32 = 0x20;
pub(super) const FAULT_STATUS: u32 = 0x34;
pub(super) const FAULT_EVENT_CONTROL: u32 = 0x38;
pub(super) const PROTECTED_ENABLE: u32 = 0x64;
pub(super) const PROTECTED_LOW_BASE: u32 = 0x68;
pub(super) const PROTECTED_LOW_LIMIT: u32 = 0x6c;
pub(super) const PROTECTED_HIGH_BASE: u32 = 0x70;
pub(super) const PROTECTED_HIGH_LIMIT: u32 = 0x78;
pub(super) const QUEUE_HEAD: u32 = 0x80;
pub(super) const QUEUE_TAIL: u32 = 0x88;
pub(super) const QUEUE_ADDRESS: u32 = 0x90;
pub(super) const COMPLETION_EVENT_CONTROL: u32 = 0xa0;
pub(super) const INTERRUPT_TABLE: u32 = 0xb8;

/// Bits of the global command register; in the global status register each reports what was commanded.
pub(super) const TRANSLATION: u32 = 1 << 31;
pub(super) const SET_ROOT_TABLE: u32 = 1 << 30;
pub(super) const ADVANCED_FAULT_LOG: u32 = 1 << 28;
pub(super) const WRITE_BUFFER_FLUSH: u32 = 1 << 27;
pub(super) const QUEUED_INVALIDATION: u32 = 1 << 26;
pub(super) const INTERRUPT_REMAPPING: u32 = 1 << 25;
pub(super) const SET_INTERRUPT_TABLE: u32 = 1 << 24;
pub(super) const COMPATIBILITY_INTERRUPTS: u32 = 1 << 23;
/// The bits that keep their state. Every command repeats them, else it would disable them.
const PERSISTENT: u32 =
    TRANSLATION | ADVANCED_FAULT_LOG | QUEUED_INVALIDATION | INTERRUPT_REMAPPING | COMPATIBILITY_INTERRUPTS;

/// Bits of the fault status register.
pub(super) const FAULT_OVERFLOW: u32 = 1 << 0;
pub(super) const FAULT_PENDING: u32 = 1 << 1;
pub(super) const QUEUE_ERROR: u32 = 1 << 4;
pub(super) const COMPLETION_ERROR: u32 = 1 << 5;
pub(super) const TIME_OUT_ERROR: u32 = 1 << 6;
/// All errors of the invalidation queue; each is cleared by writing 1.
pub(super) const QUEUE_ERRORS: u32 = QUEUE_ERROR | COMPLETION_ERROR | TIME_OUT_ERROR;

/// In the event control registers: no interrupt is sent.
pub(super) const EVENT_MASK: u32 = 1 << 31;
/// In the protected memory enable register.
pub(super) const PROTECTED_ON: u32 = 1 << 31;
/// In the protected memory enable register: what was commanded is in force.
pub(super) const PROTECTED_STATUS: u32 = 1 << 0;
/// In the root table address register: the translation table mode; 0 is legacy.
pub(super) const TABLE_MODE: u64 = 0b11 << 10;
/// In the interrupt remapping table address register: destinations are x2APIC identifiers.
pub(super) const EXTENDED_INTERRUPTS: u64 = 1 << 11;

/// Returns the global status register.
///
/// # Errors
/// [`Problem::Absurd`] if it reads as all ones, as a unit does that is gone.
pub(super) fn status(registers: &mut impl Registers) -> Result<u32, Problem> {
    match registers.read32(GLOBAL_STATUS) {
        u32::MAX => Err(Problem::Absurd { register: "GSTS", value: u32::MAX.into() }),
        status => Ok(status),
    }
}

/// Enables or disables what keeps its state.
///
/// # Errors
/// [`Problem::NoAnswer`] naming `what`, and as [`status`]'s.
pub(super) fn set(registers: &mut impl Registers, bit: u32, is_on: bool, what: &'static str) -> Result<(), Problem> {
    let kept = status(registers)? & PERSISTENT & !bit;
    registers.write32(GLOBAL_COMMAND, if is_on { kept | bit } else { kept });
    wait_for(registers, what, |registers| (registers.read32(GLOBAL_STATUS) & bit != 0) == is_on)?;
    status(registers).map(|_| ())
}

/// Issues a one-shot command: a table's address is read, or write buffers are flushed.
///
/// # Errors
/// Those of [`set`].
pub(super) fn once(registers: &mut impl Registers, bit: u32, what: &'static str) -> Result<(), Problem> {
    let kept = status(registers)? & PERSISTENT;
    registers.write32(GLOBAL_COMMAND, kept | bit);
    // Pointers report that they are set; the flush, while it is under way.
    let is_set_when_done = bit != WRITE_BUFFER_FLUSH;
    wait_for(registers, what, |registers| (registers.read32(GLOBAL_STATUS) & bit != 0) == is_set_when_done)?;
    status(registers).map(|_| ())
}
