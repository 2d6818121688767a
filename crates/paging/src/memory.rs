// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that tables are made of.

use units::PhysAddr;

/// Supplies table frames and reaches into them.
///
/// The hypervisor implements it over its own mapping of physical memory; tests over a map. `table` is always an address
/// that `allocate` returned and `free` has not received since; `index` is always below 512.
pub trait TableMemory {
    /// A 4 KiB frame, aligned, all zeros; `None` when there is none.
    fn allocate(&mut self) -> Option<PhysAddr>;

    /// Frees a frame that no entry points to any longer (the TLB may still hold its translations).
    fn free(&mut self, table: PhysAddr);

    /// The entry `index` of `table`.
    fn read(&self, table: PhysAddr, index: usize) -> u64;

    /// Replaces the entry `index` of `table`, in one 64-bit store: CPUs may be walking the table.
    fn write(&mut self, table: PhysAddr, index: usize, entry: u64);
}
