// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page tables that show the switch pages: this image's, its own, and the new image's first ones.

use paging::{Flags, Host, MapError, TableMemory, Tables};
use units::{PAGE_BYTES, PhysAddr, PhysRange};

use super::layout::{CODE_PAGE, DESCRIPTOR_PAGE};
use crate::arch::address::SWITCH_PAGES;
use crate::arch::memory;

/// Makes `tables` show the switch pages at `start`, so many bytes of it: code first, all else data.
pub(super) fn show(
    start: PhysAddr,
    shown_bytes: u64,
    tables: &mut Tables<Host>,
    memory: &mut impl TableMemory,
) -> Result<(), MapError> {
    let code = CODE_PAGE * PAGE_BYTES;
    let data = DESCRIPTOR_PAGE * PAGE_BYTES;
    tables.map(memory, SWITCH_PAGES + code, PhysAddr(start.0 + code), PAGE_BYTES, Flags::empty())?;
    let flags = Flags::WRITABLE | Flags::NO_EXECUTE;
    tables.map(memory, SWITCH_PAGES + data, PhysAddr(start.0 + data), shown_bytes - data, flags)
}

/// Makes this image's tables show the switch pages by which it came.
pub fn show_inherited(
    tables: &mut Tables<Host>,
    memory: &mut impl TableMemory,
    switch_pages: PhysRange,
) -> Result<(), MapError> {
    show(switch_pages.start(), switch_pages.bytes(), tables, memory)
}

/// Page tables from a stretch of zeroed frames, one after the other.
pub(super) struct TablePool {
    pub(super) next: u64,
    pub(super) end: u64,
}

impl TableMemory for TablePool {
    fn allocate(&mut self) -> Option<PhysAddr> {
        let table = self.next;
        self.next = table.checked_add(PAGE_BYTES).filter(|next| *next <= self.end)?;
        Some(PhysAddr(table))
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        memory::TableFrames::anywhere().read(table, index)
    }

    fn write(&mut self, table: PhysAddr, index: usize, value: u64) {
        memory::TableFrames::anywhere().write(table, index, value);
    }

    fn free(&mut self, _: PhysAddr) {}
}
