// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupt remapping tables (section 2.2.5).
//!
//! A requester names an entry of its table by the low bits of an interrupt's data. Entries have 32 bits, or 128 where
//! the unit can (GASup). A wide one is replaced in one access, so that no interrupt is lost or sent astray while it is
//! moved to another CPU.

use units::PhysAddr;

use crate::{Interrupt, Memory, Message, Problem};

/// Interrupts of one requester. An entry's number has 11 bits, of which units use nine unless they say more
/// (NumIntRemapSup): bits 8 to 10 of an interrupt's data were once its delivery mode.
pub const MOST_INTERRUPTS: u16 = 512;

/// The smallest piece of memory.
const LEAST_BYTES: u64 = 4096;
/// RemapEn.
const ENABLED: u64 = 1 << 0;
/// RqEoi: the interrupt is level-triggered.
const REQUEST_EOI: u64 = 1 << 5;
/// Where messages to CPUs go.
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;

/// How entries look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryFormat {
    /// 32 bits, destinations of 8 bits.
    Narrow,
    /// 128 bits, destinations of 8 bits.
    Wide,
    /// 128 bits, destinations of 32 bits.
    WideX2apic,
}

impl EntryFormat {
    fn bytes(self) -> u64 {
        match self {
            Self::Narrow => 4,
            Self::Wide | Self::WideX2apic => 16,
        }
    }

    /// Returns whether an interrupt can go there: the highest number is every CPU's.
    fn check(self, interrupt: Interrupt) -> Result<(), Problem> {
        let destination = interrupt.destination;
        let limit = if self == Self::WideX2apic { u32::MAX } else { 0xff };
        if destination < limit { Ok(()) } else { Err(Problem::FarDestination { destination }) }
    }

    fn encode(self, interrupt: Interrupt) -> [u64; 2] {
        let eoi = if interrupt.is_level { REQUEST_EOI } else { 0 };
        let (vector, destination) = (u64::from(interrupt.vector), u64::from(interrupt.destination));
        match self {
            Self::Narrow => [vector << 16 | destination << 8 | eoi | ENABLED, 0],
            Self::Wide | Self::WideX2apic => {
                [(destination & 0xff_ffff) << 8 | eoi | ENABLED, destination >> 24 << 56 | vector]
            }
        }
    }
}

/// A table of two to the power of `length` entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterruptTable {
    pub(super) at: PhysAddr,
    pub(super) length: u8,
    pub(super) format: EntryFormat,
}

impl InterruptTable {
    /// A table of at least `count` entries, all of them closed.
    pub(super) fn create(memory: &mut impl Memory, count: u16, format: EntryFormat) -> Result<Self, Problem> {
        let length = count.next_power_of_two().trailing_zeros() as u8;
        let mut table = Self { at: PhysAddr(0), length, format };
        table.at = memory.allocate_piece(table.bytes()).ok_or(Problem::OutOfMemory)?;
        Ok(table)
    }

    /// Gives the memory back. The unit must not use it any more.
    pub(super) fn free(self, memory: &mut impl Memory) {
        memory.free_piece(self.at, self.bytes());
    }

    fn bytes(self) -> u64 {
        (self.format.bytes() << self.length).max(LEAST_BYTES)
    }

    /// Replaces an entry, whose index is within the table.
    pub(super) fn set(self, memory: &mut impl Memory, index: u16, interrupt: Option<Interrupt>) -> Result<(), Problem> {
        interrupt.map_or(Ok(()), |interrupt| self.format.check(interrupt))?;
        let value = interrupt.map_or([0, 0], |interrupt| self.format.encode(interrupt));
        let at = self.at.0 + u64::from(index) * self.format.bytes();
        if self.format != EntryFormat::Narrow {
            memory.write_pair(PhysAddr(at), value);
            return Ok(());
        }
        let (word, shift) = (PhysAddr(at & !0b111), (at & 0b111) * 8);
        let others = memory.read_word(word) & !(u64::from(u32::MAX) << shift);
        memory.write_word(word, others | value[0] << shift);
        Ok(())
    }
}

/// The message that names this entry.
pub(super) fn message(index: u16) -> Message {
    Message { address: MESSAGE_ADDRESS, data: u32::from(index) }
}
