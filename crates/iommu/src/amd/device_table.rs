// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device table: 256 bits per requester (section 2.2.2).
//!
//! The first half of an entry is about memory, the second about interrupts. Each is replaced in one access of 128 bits,
//! which the specification asks for (section 2.2.2.2), and is complete on its own: the unit never reads a half-written
//! one. Entries stay valid (V, TV) from the first to the last, with IV in all but those of requesters with interrupts
//! that pass; a blocked function's refuses everything.

use units::PhysAddr;

use super::registers::{ADDRESS, DEVICE_TABLE_BASE, read_present};
use crate::{DomainId, Memory, Problem, Registers};

const ENTRY_BYTES: u64 = 32;
const HALF_BYTES: u64 = 16;
const PAGE: u64 = 4096;

/// A requester's access to memory: the first half of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nothing.
    Nothing,
    /// Nothing, and what is refused is not logged (SA).
    Stopped,
    /// The memory that the domain with this top table maps.
    Domain(DomainId, PhysAddr),
}

/// The treatment of a requester's fixed and arbitrated interrupts: the second half of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remapping {
    /// They are refused.
    Refused,
    /// They are refused, which is not logged (IG).
    Stopped,
    /// They pass as they are, by a clear IV. IntCtl 01b means the same, but QEMU's unit (7.2, 10.0) sends vector 0 for
    /// it.
    Passed,
    /// They are remapped by the table at this address, of two to the power of this many entries.
    Table(PhysAddr, u8),
}

/// V.
const VALID: u64 = 1 << 0;
/// TV.
const TRANSLATION_VALID: u64 = 1 << 1;
/// Mode: levels of the I/O page tables, 0 for none.
const MODE_SHIFT: u32 = 9;
const LEVELS: u64 = 4;
/// IR and IW: the rights of the whole.
const READ_WRITE: u64 = 1 << 61 | 1 << 62;
/// SA, bit 98: no I/O page fault of the requester's is logged.
const SUPPRESS_ALL: u64 = 1 << 34;
/// IV.
const INTERRUPTS_VALID: u64 = 1 << 0;
/// IG, bit 133: interrupts that are not mapped are not logged.
const IGNORE_UNMAPPED: u64 = 1 << 5;
/// IntTabLen: log2 of the number of entries.
const LENGTH_SHIFT: u32 = 1;
/// Interrupt Table Root Pointer, bits 6 to 51 of the third word; tables are aligned to 128 bytes.
const INTERRUPT_TABLE: u64 = 0x000f_ffff_ffff_ff80;
/// IntCtl.
const CONTROL_SHIFT: u32 = 60;

impl Reach {
    fn encode(self) -> [u64; 2] {
        match self {
            Self::Nothing => [VALID | TRANSLATION_VALID, 0],
            Self::Stopped => [VALID | TRANSLATION_VALID, SUPPRESS_ALL],
            Self::Domain(DomainId(id), root) => {
                let first = (root.0 & ADDRESS) | LEVELS << MODE_SHIFT | READ_WRITE | VALID | TRANSLATION_VALID;
                [first, u64::from(id)]
            }
        }
    }

    fn decode([first, second]: [u64; 2]) -> Self {
        match first >> MODE_SHIFT & 0b111 {
            LEVELS => Self::Domain(DomainId(second as u16), PhysAddr(first & ADDRESS)),
            _ if second & SUPPRESS_ALL != 0 => Self::Stopped,
            _ => Self::Nothing,
        }
    }
}

impl Remapping {
    fn encode(self) -> u64 {
        match self {
            Self::Refused => INTERRUPTS_VALID,
            Self::Stopped => IGNORE_UNMAPPED | INTERRUPTS_VALID,
            Self::Passed => 0,
            Self::Table(at, length) => {
                let length = u64::from(length) << LENGTH_SHIFT;
                2 << CONTROL_SHIFT | (at.0 & INTERRUPT_TABLE) | length | INTERRUPTS_VALID
            }
        }
    }

    fn decode(word: u64) -> Self {
        match word >> CONTROL_SHIFT & 0b11 {
            _ if word & INTERRUPTS_VALID == 0 => Self::Passed,
            2 => Self::Table(PhysAddr(word & INTERRUPT_TABLE), (word >> LENGTH_SHIFT & 0xf) as u8),
            _ if word & IGNORE_UNMAPPED != 0 => Self::Stopped,
            _ => Self::Refused,
        }
    }
}

/// Firmware's settings for a requester (IVHD, section 5.2.2.2, "DTE setting"): INIT, external interrupts and NMI pass
/// in bits 0 to 2, LINT0 and LINT1 in bits 6 and 7; SysMgt in bits 4 and 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirmwareFlags(pub(super) u8);

impl FirmwareFlags {
    /// Bits of the second word.
    fn reach(self) -> u64 {
        u64::from(self.0 >> 4 & 0b11) << 40
    }

    /// Bits of the third word.
    fn remapping(self) -> u64 {
        u64::from(self.0 & 0b111) << 56 | u64::from(self.0 >> 6) << 62
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct DeviceTable {
    base: PhysAddr,
    bytes: u64,
}

impl DeviceTable {
    /// Creates a table for the requesters up to `highest`, all of them blocked.
    pub(super) fn create(memory: &mut impl Memory, highest: u16) -> Result<Self, Problem> {
        let bytes = ((u64::from(highest) + 1) * ENTRY_BYTES).next_power_of_two().max(PAGE);
        let base = memory.allocate_piece(bytes).ok_or(Problem::OutOfMemory)?;
        let table = Self { base, bytes };
        for requester in 0..=table.highest() {
            table.set_reach(memory, requester, Reach::Nothing);
            table.set_remapping(memory, requester, Remapping::Refused);
        }
        Ok(table)
    }

    /// Adopts the table that the unit uses.
    ///
    /// # Errors
    /// [`Problem::NotAdopted`] if it does not reach to `highest` or does not lie in `is_ours`.
    pub(super) fn adopt(
        registers: &mut impl Registers,
        highest: u16,
        is_ours: &impl Fn(PhysAddr, u64) -> bool,
    ) -> Result<Self, Problem> {
        let register = read_present(registers, DEVICE_TABLE_BASE, "Device Table Base")?;
        let (base, bytes) = (PhysAddr(register & ADDRESS), ((register & 0x1ff) + 1) * PAGE);
        if !bytes.is_power_of_two() || !base.is_aligned(bytes) {
            return Err(Problem::NotAdopted { reason: "the device table's size or alignment is not a power of two" });
        }
        if bytes < (u64::from(highest) + 1) * ENTRY_BYTES {
            return Err(Problem::NotAdopted { reason: "the device table lacks entries of this machine's functions" });
        }
        if !is_ours(base, bytes) {
            return Err(Problem::NotAdopted { reason: "the device table is not in the host's memory" });
        }
        Ok(Self { base, bytes })
    }

    /// Gives the memory back. The unit must not use it any more.
    pub(super) fn free(self, memory: &mut impl Memory) {
        memory.free_piece(self.base, self.bytes);
    }

    /// Names the table to the unit, in one access.
    pub(super) fn install(&self, registers: &mut impl Registers) {
        registers.write64(DEVICE_TABLE_BASE, self.base.0 | (self.bytes / PAGE - 1));
    }

    /// Returns the highest requester that has an entry.
    pub(super) fn highest(&self) -> u16 {
        (self.bytes / ENTRY_BYTES - 1) as u16
    }

    /// Returns the memory that a requester reaches.
    pub(super) fn reach(&self, memory: &impl Memory, requester: u16) -> Reach {
        let at = self.entry(requester);
        Reach::decode([memory.read_word(at), memory.read_word(PhysAddr(at.0 + 8))])
    }

    /// Replaces what a requester reaches; the unit may use its copy of the entry until that is invalidated.
    pub(super) fn set_reach(&self, memory: &mut impl Memory, requester: u16, reach: Reach) {
        memory.write_pair(self.entry(requester), reach.encode());
    }

    /// Returns the treatment of a requester's interrupts.
    pub(super) fn remapping(&self, memory: &impl Memory, requester: u16) -> Remapping {
        Remapping::decode(memory.read_word(PhysAddr(self.entry(requester).0 + HALF_BYTES)))
    }

    /// Replaces what becomes of a requester's interrupts, as [`DeviceTable::set_reach`] does.
    pub(super) fn set_remapping(&self, memory: &mut impl Memory, requester: u16, remapping: Remapping) {
        memory.write_pair(PhysAddr(self.entry(requester).0 + HALF_BYTES), [remapping.encode(), 0]);
    }

    /// Adds what firmware asks for; before the unit uses the table.
    pub(super) fn add_flags(&self, memory: &mut impl Memory, requester: u16, flags: FirmwareFlags) {
        let (second, third) = (PhysAddr(self.entry(requester).0 + 8), PhysAddr(self.entry(requester).0 + HALF_BYTES));
        memory.write_word(second, memory.read_word(second) | flags.reach());
        memory.write_word(third, memory.read_word(third) | flags.remapping());
    }

    fn entry(&self, requester: u16) -> PhysAddr {
        PhysAddr(self.base.0 + u64::from(requester) * ENTRY_BYTES)
    }
}
