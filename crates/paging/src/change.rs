// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changing the tables. The callers in `tables` have checked the span; here it is only carried out.
//!
//! Only [`Change::map`] and [`Change::split`] allocate. `split` runs before anything is changed and leaves every
//! translation as it was, so that the change after it cannot fail.

use core::marker::PhantomData;

use units::{PageSize, PhysAddr};

use crate::error::MapError;
use crate::format::{Entry, Flags, Format};
use crate::memory::TableMemory;
use crate::walk::{ROOT_LEVEL, Span, entry_bytes, index, page_size};

const ENTRIES: usize = 512;

pub(crate) struct Change<'a, F, M> {
    memory: &'a mut M,
    root: PhysAddr,
    /// The highest level that may map a page.
    largest_level: u8,
    format: PhantomData<F>,
}

impl<'a, F: Format, M: TableMemory> Change<'a, F, M> {
    /// Changes of the tables at `root`, which use pages up to `largest`.
    pub(crate) fn new(memory: &'a mut M, root: PhysAddr, largest: PageSize) -> Self {
        let largest_level = (1..=3).rfind(|level| page_size(*level) <= largest).unwrap_or(1);
        Self { memory, root, largest_level, format: PhantomData }
    }

    /// Maps `span`, of which nothing is mapped. Where tables run out, a part stays mapped: the caller unmaps it.
    pub(crate) fn map(&mut self, span: Span, phys: PhysAddr, flags: Flags) -> Result<(), MapError> {
        self.map_in(self.root, ROOT_LEVEL, span, phys, flags)
    }

    fn map_in(&mut self, table: PhysAddr, level: u8, span: Span, phys: PhysAddr, flags: Flags) -> Result<(), MapError> {
        for (index, slot) in span.slots(level) {
            let phys = PhysAddr(phys.0 + (slot.start - span.start));
            let whole = slot.bytes() == entry_bytes(level) && phys.is_aligned(entry_bytes(level));
            match F::decode(self.memory.read(table, index), level) {
                Entry::Absent if whole && level <= self.largest_level => {
                    self.memory.write(table, index, F::page(phys, flags, level));
                }
                Entry::Absent => {
                    let next = self.memory.allocate().ok_or(MapError::OutOfTables)?;
                    self.memory.write(table, index, F::table(next, level));
                    self.map_in(next, level - 1, slot, phys, flags)?;
                }
                Entry::Table(next) => self.map_in(next, level - 1, slot, phys, flags)?,
                Entry::Page(..) => return Err(MapError::AlreadyMapped { address: F::extend(slot.start) }),
            }
        }
        Ok(())
    }

    /// Splits larger pages until page boundaries lie at both ends of `span`. No translation changes.
    pub(crate) fn split(&mut self, span: Span) -> Result<(), MapError> {
        if span.bytes() == 0 {
            return Ok(());
        }
        self.split_at(span.start)?;
        self.split_at(span.end)
    }

    fn split_at(&mut self, boundary: u64) -> Result<(), MapError> {
        let mut table = self.root;
        for level in (1..=ROOT_LEVEL).rev() {
            if boundary.is_multiple_of(entry_bytes(level)) {
                return Ok(());
            }
            let index = index(boundary, level);
            table = match F::decode(self.memory.read(table, index), level) {
                Entry::Absent => return Ok(()),
                Entry::Table(next) => next,
                Entry::Page(phys, flags) => self.split_page(table, index, level, phys, flags)?,
            };
        }
        Ok(())
    }

    fn split_page(
        &mut self,
        table: PhysAddr,
        index: usize,
        level: u8,
        phys: PhysAddr,
        flags: Flags,
    ) -> Result<PhysAddr, MapError> {
        let next = self.memory.allocate().ok_or(MapError::OutOfTables)?;
        let mut part = phys;
        for entry in 0..ENTRIES {
            self.memory.write(next, entry, F::page(part, flags, level - 1));
            part.0 += entry_bytes(level - 1);
        }
        self.memory.write(table, index, F::table(next, level));
        Ok(next)
    }

    /// Clears every page in `span`, which begins and ends at page boundaries, and frees tables left empty.
    pub(crate) fn unmap(&mut self, span: Span) {
        self.unmap_in(self.root, ROOT_LEVEL, span);
    }

    fn unmap_in(&mut self, table: PhysAddr, level: u8, span: Span) {
        for (index, slot) in span.slots(level) {
            match F::decode(self.memory.read(table, index), level) {
                Entry::Absent => {}
                Entry::Page(..) => self.memory.write(table, index, 0),
                Entry::Table(next) => {
                    self.unmap_in(next, level - 1, slot);
                    if self.is_empty(next) {
                        self.memory.write(table, index, 0);
                        self.memory.free(next);
                    }
                }
            }
        }
    }

    fn is_empty(&self, table: PhysAddr) -> bool {
        (0..ENTRIES).all(|index| self.memory.read(table, index) == 0)
    }

    /// Rewrites the rights of every page in `span`, which begins and ends at page boundaries.
    pub(crate) fn protect(&mut self, span: Span, flags: Flags) {
        self.protect_in(self.root, ROOT_LEVEL, span, flags);
    }

    fn protect_in(&mut self, table: PhysAddr, level: u8, span: Span, flags: Flags) {
        for (index, slot) in span.slots(level) {
            match F::decode(self.memory.read(table, index), level) {
                Entry::Absent => {}
                Entry::Page(phys, _) => self.memory.write(table, index, F::page(phys, flags, level)),
                Entry::Table(next) => self.protect_in(next, level - 1, slot, flags),
            }
        }
    }

    /// Frees `table`, with entries of `level`, and all tables below it.
    pub(crate) fn free_tables(&mut self, table: PhysAddr, level: u8) {
        for index in 0..ENTRIES {
            if let Entry::Table(next) = F::decode(self.memory.read(table, index), level) {
                self.free_tables(next, level - 1);
            }
        }
        self.memory.free(table);
    }
}
