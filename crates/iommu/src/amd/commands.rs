// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of commands to the unit (section 2.4).
//!
//! The unit works them off in order. Its answer to `COMPLETION_WAIT` is a store to memory: a number that counts up, so
//! that an answer that comes late is not taken for a later one.

use units::PhysAddr;

use super::registers::{
    self, ADDRESS, COMMAND_BASE, COMMAND_HEAD, COMMAND_TAIL, read_pointer, read_present, ring_base,
};
use crate::{DomainId, Memory, Problem, Registers, wait_for};

/// Bytes of the ring.
const RING_BYTES: u64 = 4096;
/// Bytes of a command.
const COMMAND_BYTES: u64 = 16;
const ENTRIES: u64 = RING_BYTES / COMMAND_BYTES;
/// The ring, and a page with the word to which the unit stores.
const PIECE_BYTES: u64 = 2 * RING_BYTES;
/// Bits 60 to 63 of a command's first word: what it is.
const OPCODE_SHIFT: u32 = 60;
/// An operand of `INVALIDATE_IOMMU_PAGES` that covers every address: all its bits are ones, but the highest.
const ALL_PAGES: u64 = 0x7fff_ffff_ffff_f000;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Stores a value when all commands before this one have been carried out.
    CompletionWait { store: PhysAddr, value: u64 },
    /// The unit's copy of a device table entry.
    InvalidateDeviceTableEntry { requester: u16 },
    /// Translations of a domain, and the unit's copies of the tables on the way.
    InvalidatePages { domain: DomainId, operand: u64 },
    /// The unit's copy of a requester's interrupt remapping table.
    InvalidateInterruptTable { requester: u16 },
    /// Every copy that the unit holds.
    InvalidateAll,
}

impl Command {
    /// Returns the command that drops all translations of a domain.
    pub(super) fn invalidate_domain(domain: DomainId) -> Self {
        Self::InvalidatePages { domain, operand: pages_operand(0, u64::MAX) }
    }

    /// Returns the command that drops a domain's translations of these addresses, and of others where that takes no
    /// more commands.
    pub(super) fn invalidate_range(domain: DomainId, address: u64, bytes: u64) -> Self {
        Self::InvalidatePages { domain, operand: pages_operand(address, bytes) }
    }

    /// Returns its two words.
    pub(super) fn encode(self) -> [u64; 2] {
        match self {
            // Bit 0: store the data.
            Self::CompletionWait { store, value } => [1 << OPCODE_SHIFT | (store.0 & !0b111) | 1, value],
            Self::InvalidateDeviceTableEntry { requester } => [2 << OPCODE_SHIFT | u64::from(requester), 0],
            Self::InvalidatePages { domain: DomainId(domain), operand } => {
                [3 << OPCODE_SHIFT | u64::from(domain) << 32, operand]
            }
            Self::InvalidateInterruptTable { requester } => [5 << OPCODE_SHIFT | u64::from(requester), 0],
            Self::InvalidateAll => [8 << OPCODE_SHIFT, 0],
        }
    }
}

/// Returns the second word of `INVALIDATE_IOMMU_PAGES`: one page, or the smallest naturally aligned block around the
/// range. The lowest zero bit of the address states the block's size. PDE (bit 1) is always set, for tables may have
/// been freed.
fn pages_operand(address: u64, bytes: u64) -> u64 {
    const SIZE: u64 = 1 << 0;
    const DIRECTORIES: u64 = 1 << 1;
    let first = address >> 12;
    let last = address.saturating_add(bytes.max(1) - 1) >> 12;
    let differing = u64::BITS - (first ^ last).leading_zeros();
    let block = match differing {
        0 => return first << 12 | DIRECTORIES,
        differing if differing > 50 => ALL_PAGES,
        // A block of 2^differing pages: ones below its highest offset bit, which is zero.
        differing => (first >> differing << differing | ((1 << (differing - 1)) - 1)) << 12,
    };
    block | SIZE | DIRECTORIES
}

/// The ring.
#[derive(Debug)]
pub(super) struct CommandBuffer {
    base: PhysAddr,
    /// The offset of the next command.
    tail: u64,
    /// Commands that may not have been carried out.
    pending: u64,
    /// The value that the last `COMPLETION_WAIT` stores.
    completion: u64,
}

impl CommandBuffer {
    /// Creates an empty ring. The unit does not know of it yet.
    pub(super) fn create(memory: &mut impl Memory) -> Result<Self, Problem> {
        let base = memory.allocate_piece(PIECE_BYTES).ok_or(Problem::OutOfMemory)?;
        Ok(Self { base, tail: 0, pending: 0, completion: 0 })
    }

    /// Adopts the ring that the unit uses.
    ///
    /// # Errors
    /// [`Problem::NotAdopted`] if it is none of [`CommandBuffer::create`]'s or lies outside of `is_ours`.
    pub(super) fn adopt(
        registers: &mut impl Registers,
        memory: &impl Memory,
        is_ours: &impl Fn(PhysAddr, u64) -> bool,
    ) -> Result<Self, Problem> {
        let register = read_present(registers, COMMAND_BASE, "Command Buffer Base")?;
        let base = PhysAddr(register & ADDRESS);
        if register != ring_base(base.0, RING_BYTES) || !base.is_aligned(PIECE_BYTES) {
            return Err(Problem::NotAdopted { reason: "the command buffer has another size or alignment" });
        }
        if !is_ours(base, PIECE_BYTES) {
            return Err(Problem::NotAdopted { reason: "the command buffer is not in the host's memory" });
        }
        let head = read_pointer(registers, COMMAND_HEAD, "Command Buffer Head", RING_BYTES)?;
        let tail = read_pointer(registers, COMMAND_TAIL, "Command Buffer Tail", RING_BYTES)?;
        // Commands of the image before may still be under way: no answer to one of them may be taken for a later one's.
        let completion = memory.read_word(PhysAddr(base.0 + RING_BYTES)).wrapping_add(ENTRIES);
        Ok(Self { base, tail, pending: pending(head, tail), completion })
    }

    /// Names the ring to a unit that carries out no commands.
    pub(super) fn install(&self, registers: &mut impl Registers) {
        registers.write64(COMMAND_BASE, ring_base(self.base.0, RING_BYTES));
        registers.write32(COMMAND_HEAD, 0);
        registers.write32(COMMAND_TAIL, 0);
    }

    /// Gives the memory back. The unit must not use it any more.
    pub(super) fn free(self, memory: &mut impl Memory) {
        memory.free_piece(self.base, PIECE_BYTES);
    }

    /// Adds a command. The unit may carry it out only at the next [`CommandBuffer::finish`].
    pub(super) fn push<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        command: Command,
    ) -> Result<(), Problem> {
        // One entry stays free, else a full ring would be an empty one; one is kept for the wait.
        if self.pending + 2 >= ENTRIES {
            self.finish(registers, memory)?;
        }
        self.store(memory, command);
        Ok(())
    }

    /// Returns when all commands have been carried out.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`]: they may be carried out later.
    pub(super) fn finish<R: Registers, M: Memory>(&mut self, registers: &mut R, memory: &mut M) -> Result<(), Problem> {
        let store = PhysAddr(self.base.0 + RING_BYTES);
        self.wait_for_space(registers)?;
        self.completion = self.completion.wrapping_add(1);
        self.store(memory, Command::CompletionWait { store, value: self.completion });
        registers.write32(COMMAND_TAIL, self.tail as u32);
        let expected = self.completion;
        wait_for(registers, "its commands", |_| memory.read_word(store) == expected)?;
        self.pending = 0;
        Ok(())
    }

    /// Waits until the ring has space: a unit that has not answered is not sent more than the ring holds.
    fn wait_for_space<R: Registers>(&mut self, registers: &mut R) -> Result<(), Problem> {
        if self.pending + 1 < ENTRIES {
            return Ok(());
        }
        let tail = self.tail;
        let fetched = |registers: &mut R| pending(u64::from(registers.read32(COMMAND_HEAD)), tail);
        wait_for(registers, "its commands of before", |registers| fetched(registers) + 1 < ENTRIES)?;
        self.pending = fetched(registers);
        Ok(())
    }

    /// Leaves space for one command.
    #[cfg(test)]
    pub(super) fn fill_for_test(&mut self, memory: &mut impl Memory) {
        while self.pending + 2 < ENTRIES {
            self.store(memory, Command::InvalidateAll);
        }
    }

    fn store(&mut self, memory: &mut impl Memory, command: Command) {
        let [first, second] = command.encode();
        memory.write_word(PhysAddr(self.base.0 + self.tail), first);
        memory.write_word(PhysAddr(self.base.0 + self.tail + 8), second);
        self.tail = (self.tail + COMMAND_BYTES) % RING_BYTES;
        self.pending += 1;
    }

    /// Stops the unit from taking commands, and waits until it has stopped.
    pub(super) fn stop(registers: &mut impl Registers) -> Result<(), Problem> {
        let (control, running) = (registers::control::COMMANDS, registers::status::COMMANDS_RUN);
        registers::stop_ring(registers, control, running, "stopping its command buffer")
    }
}

/// Returns the number of commands that the unit has yet to fetch.
fn pending(head: u64, tail: u64) -> u64 {
    (tail.wrapping_sub(head) % RING_BYTES) / COMMAND_BYTES
}

#[cfg(test)]
#[path = "commands_tests.rs"]
mod tests;
