// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupt remapping tables (section 2.2.5).
//!
//! A requester names an entry of its table by the low bits of an interrupt's data. Entries have 32 bits, or 128 where
//! the unit can (GASup). A wide one is replaced in one access, so that no interrupt is lost or sent astray while it is
//! moved to another CPU.

use units::{PAGE_BYTES, PhysAddr};

use crate::{Interrupt, Memory, Message, Problem};

/// Interrupts of one requester. An entry's number has 11 bits, of which units use nine unless they report more
/// (NumIntRemapSup): bits 8 to 10 of an interrupt's data were once its delivery mode.
pub const MOST_INTERRUPTS: u16 = 512;

/// RemapEn.
const ENABLED: u64 = 1 << 0;
/// RqEoi: the interrupt is level-triggered.
const REQUEST_EOI: u64 = 1 << 5;
/// Address of messages to CPUs.
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;

/// The format of entries.
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

    /// Returns the interrupt of an entry; `None` if it is closed. Destinations have the bits that the format has.
    fn decode(self, [first, second]: [u64; 2]) -> Option<Interrupt> {
        let near = (first >> 8) as u32;
        let (vector, destination) = match self {
            Self::Narrow => ((first >> 16) as u8, near & 0xff),
            Self::Wide => (second as u8, near & 0xff),
            Self::WideX2apic => (second as u8, near & 0xff_ffff | ((second >> 56) as u32) << 24),
        };
        let interrupt = Interrupt { vector, destination, is_level: first & REQUEST_EOI != 0 };
        (first & ENABLED != 0).then_some(interrupt)
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
    /// Creates a table of at least `count` entries, all of them closed.
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

    /// Returns the number of bytes of a table with every entry that a requester could name: QEMU's unit does not
    /// compare with the length.
    fn bytes(self) -> u64 {
        (self.format.bytes() * u64::from(MOST_INTERRUPTS)).max(PAGE_BYTES)
    }

    /// Replaces an entry. `index` is within the table.
    pub(super) fn set(self, memory: &mut impl Memory, index: u16, interrupt: Option<Interrupt>) -> Result<(), Problem> {
        interrupt.map_or(Ok(()), |interrupt| self.format.check(interrupt))?;
        let value = interrupt.map_or([0, 0], |interrupt| self.format.encode(interrupt));
        let at = self.entry(index);
        if self.format != EntryFormat::Narrow {
            memory.write_pair(at, value);
            return Ok(());
        }
        let (word, shift) = half(at);
        let others = memory.read_word(word) & !(u64::from(u32::MAX) << shift);
        memory.write_word(word, others | value[0] << shift);
        Ok(())
    }

    /// Returns the interrupt of an entry, `None` if it is closed. `index` is within the table.
    pub(super) fn get(self, memory: &impl Memory, index: u16) -> Option<Interrupt> {
        let at = self.entry(index);
        self.format.decode(match self.format {
            EntryFormat::Narrow => {
                let (word, shift) = half(at);
                [memory.read_word(word) >> shift & u64::from(u32::MAX), 0]
            }
            EntryFormat::Wide | EntryFormat::WideX2apic => [memory.read_word(at), memory.read_word(PhysAddr(at.0 + 8))],
        })
    }

    fn entry(self, index: u16) -> PhysAddr {
        PhysAddr(self.at.0 + u64::from(index) * self.format.bytes())
    }
}

/// Returns the word in which an entry of 32 bits is, and the number of its first bit.
fn half(at: PhysAddr) -> (PhysAddr, u64) {
    (PhysAddr(at.0 & !0b111), (at.0 & 0b111) * 8)
}

/// Returns the message that names this entry.
pub(super) fn message(index: u16) -> Message {
    Message { address: MESSAGE_ADDRESS, data: u32::from(index) }
}
