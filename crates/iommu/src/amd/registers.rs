// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers (section 3.4), and the features that they state.

use crate::{Problem, Registers, wait_for};

/// Device Table Base Address Register: address in bits 12–51, size in 4 KiB less one in bits 0–8.
pub(super) const DEVICE_TABLE_BASE: u32 = 0x00;
/// Command Buffer Base Address Register: address in bits 12–51, log2 of the number of entries in bits 56–59.
pub(super) const COMMAND_BASE: u32 = 0x08;
/// Event Log Base Address Register, as the command buffer's.
pub(super) const EVENT_BASE: u32 = 0x10;
/// IOMMU Control Register.
pub(super) const CONTROL: u32 = 0x18;
/// IOMMU Exclusion Base Register: bit 0 enables a range that is not translated.
pub(super) const EXCLUSION_BASE: u32 = 0x20;
/// IOMMU Extended Feature Register.
pub(super) const EXTENDED_FEATURES: u32 = 0x30;
/// Command Buffer Head Pointer Register.
pub(super) const COMMAND_HEAD: u32 = 0x2000;
/// Command Buffer Tail Pointer Register.
pub(super) const COMMAND_TAIL: u32 = 0x2008;
/// Event Log Head Pointer Register.
pub(super) const EVENT_HEAD: u32 = 0x2010;
/// Event Log Tail Pointer Register.
pub(super) const EVENT_TAIL: u32 = 0x2018;
/// IOMMU Status Register.
pub(super) const STATUS: u32 = 0x2020;

/// Bits 12 to 51 of a register that holds an address.
pub(super) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Position of the number of a ring's entries in its base register, as a logarithm.
const RING_SIZE_SHIFT: u32 = 56;

/// Bits of the control register.
pub(super) mod control {
    /// IommuEn.
    pub(in crate::amd) const ENABLE: u64 = 1 << 0;
    /// EventLogEn.
    pub(in crate::amd) const EVENT_LOG: u64 = 1 << 2;
    /// Coherent: reads of the device table snoop.
    pub(in crate::amd) const COHERENT: u64 = 1 << 10;
    /// CmdBufEn.
    pub(in crate::amd) const COMMANDS: u64 = 1 << 12;
    /// GAEn: entries of interrupt remapping tables have 128 bits.
    pub(in crate::amd) const WIDE_INTERRUPTS: u64 = 1 << 17;
    /// XTEn: destinations of interrupts have 32 bits.
    pub(in crate::amd) const X2APIC: u64 = 1 << 50;
}

/// Bits of the status register.
pub(super) mod status {
    /// EventOverflow; cleared by writing a one.
    pub(in crate::amd) const EVENT_OVERFLOW: u64 = 1 << 0;
    /// EventLogInt; cleared by writing a one.
    pub(in crate::amd) const EVENT_INTERRUPT: u64 = 1 << 1;
    /// EventLogRun.
    pub(in crate::amd) const EVENT_LOG_RUNS: u64 = 1 << 3;
    /// CmdBufRun.
    pub(in crate::amd) const COMMANDS_RUN: u64 = 1 << 4;
}

/// The capabilities of a unit that this driver uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// XTSup.
    pub(super) has_x2apic: bool,
    /// IASup: all caches are invalidated by one command.
    pub(super) has_invalidate_all: bool,
    /// GASup.
    pub(super) has_wide_interrupts: bool,
}

impl Features {
    /// Reads them.
    ///
    /// # Errors
    /// [`Problem::Absurd`] if there is no unit, [`Problem::Lacks`] if it cannot translate by tables of four levels.
    pub(super) fn read(registers: &mut impl Registers) -> Result<Self, Problem> {
        let value = read_present(registers, EXTENDED_FEATURES, "Extended Feature")?;
        // HATS, bits 10 and 11: 4, 5 or 6 levels; the value 3 is none of them.
        if value >> 10 & 0b11 == 0b11 {
            return Err(Problem::Lacks { feature: "HATS: I/O page tables of four levels" });
        }
        let has_wide_interrupts = value & 1 << 7 != 0;
        Ok(Self {
            has_x2apic: value & 1 << 2 != 0 && has_wide_interrupts,
            has_invalidate_all: value & 1 << 6 != 0,
            has_wide_interrupts,
        })
    }
}

/// Reads a register of 64 bits that cannot be all ones.
pub(super) fn read_present(
    registers: &mut impl Registers,
    offset: u32,
    register: &'static str,
) -> Result<u64, Problem> {
    match registers.read64(offset) {
        value @ u64::MAX => Err(Problem::Absurd { register, value }),
        value => Ok(value),
    }
}

/// Reads a head or tail pointer, which lies within a ring of this many bytes. The ring's end is its beginning: QEMU's
/// unit shows a head there.
pub(super) fn read_pointer(
    registers: &mut impl Registers,
    offset: u32,
    register: &'static str,
    ring_bytes: u64,
) -> Result<u64, Problem> {
    let value = u64::from(registers.read32(offset));
    if value == ring_bytes {
        return Ok(0);
    }
    if value > ring_bytes || !value.is_multiple_of(16) {
        return Err(Problem::Absurd { register, value });
    }
    Ok(value)
}

/// Returns the value of a base register for a ring of entries of 16 bytes.
pub(super) fn ring_base(address: u64, ring_bytes: u64) -> u64 {
    let entries = ring_bytes / 16;
    (address & ADDRESS) | u64::from(entries.trailing_zeros()) << RING_SIZE_SHIFT
}

/// Changes bits of the control register.
pub(super) fn change_control(registers: &mut impl Registers, set: u64, clear: u64) {
    let value = registers.read64(CONTROL);
    registers.write64(CONTROL, value & !clear | set);
}

/// Disables one of the rings by its bit in the control register, and waits until it has stopped.
pub(super) fn stop_ring(
    registers: &mut impl Registers,
    control: u64,
    running: u64,
    what: &'static str,
) -> Result<(), Problem> {
    change_control(registers, 0, control);
    wait_for(registers, what, |registers| registers.read64(STATUS) & running == 0)
}
