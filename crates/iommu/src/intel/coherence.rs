// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units that do not snoop the CPUs' caches when they read tables (ECAP.C clear, section 11.4.3): what they are to see
//! is written back first.

use paging::TableMemory;
use units::{PAGE_BYTES, PhysAddr};

use crate::hardware::Memory;

/// Table memory that writes back every store at once, so that stores reach a unit in the order in which they were
/// made. A domain's tables are changed through it if any unit that uses the domain does not snoop.
#[derive(Debug)]
pub struct WrittenBack<'a, M>(pub &'a mut M);

impl<M: Memory> TableMemory for WrittenBack<'_, M> {
    fn allocate(&mut self) -> Option<PhysAddr> {
        let table = self.0.allocate()?;
        self.0.write_back(table, PAGE_BYTES);
        Some(table)
    }

    fn free(&mut self, table: PhysAddr) {
        self.0.free(table);
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.0.read(table, index)
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.0.write(table, index, entry);
        self.0.write_back(PhysAddr(table.0 + index as u64 * 8), 8);
    }
}

/// The way in which a unit's own tables are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stores {
    pub(super) is_coherent: bool,
}

impl Stores {
    /// Allocates zeroed memory that the unit sees as such.
    pub(super) fn allocate(self, memory: &mut impl Memory, bytes: u64) -> Option<PhysAddr> {
        let piece = memory.allocate_piece(bytes)?;
        if !self.is_coherent {
            memory.write_back(piece, bytes);
        }
        Some(piece)
    }

    /// Replaces eight bytes, before the next store as the unit sees it.
    pub(super) fn store(self, memory: &mut impl Memory, at: PhysAddr, word: u64) {
        memory.write_word(at, word);
        if !self.is_coherent {
            memory.write_back(at, 8);
        }
    }
}
