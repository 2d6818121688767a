// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reaching a unit: its registers, and the memory in which its tables are.

use paging::TableMemory;
use units::PhysAddr;

use crate::Problem;

/// Microseconds that a unit may take for a command. VT-d gives no bound; Linux waits for 10 seconds, and real
/// units take less than a millisecond.
const WAIT_US: u32 = 1_000_000;

/// A unit's registers, by their offset. Accesses are aligned to their size.
pub trait Registers {
    /// Reads 32 bits.
    fn read32(&mut self, offset: u32) -> u32;
    /// Writes 32 bits.
    fn write32(&mut self, offset: u32, value: u32);
    /// Reads 64 bits, in one access.
    fn read64(&mut self, offset: u32) -> u64;
    /// Writes 64 bits, in one access.
    fn write64(&mut self, offset: u32, value: u64);
    /// Waits about a microsecond.
    fn pause(&mut self);
}

/// Memory for tables that a unit reads: frames as page tables ([`TableMemory`]), and larger tables in one piece.
///
/// [`write_back`](Memory::write_back) writes back memory that a unit reads without snooping the caches.
pub trait Memory: TableMemory {
    /// Allocates zeroed memory of this many bytes, a power of two and at least 4 KiB, aligned to its size; `None` when
    /// there is none.
    fn allocate_piece(&mut self, bytes: u64) -> Option<PhysAddr>;

    /// Frees a piece that [`allocate_piece`](Memory::allocate_piece) returned, of this size.
    fn free_piece(&mut self, at: PhysAddr, bytes: u64);

    /// Returns the eight bytes at this physical address, a multiple of eight within a piece. A unit may have written
    /// them.
    fn read_word(&self, at: PhysAddr) -> u64;

    /// Replaces the eight bytes at this address, in one store.
    fn write_word(&mut self, at: PhysAddr, value: u64);

    /// Replaces the sixteen bytes at this address, a multiple of sixteen, in one access (`CMPXCHG16B`): a unit may be
    /// reading them, and must not see half of the change. The word at the lower address is the first.
    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]);

    /// Stores to these bytes are in memory before it returns: for units that do not snoop caches.
    fn write_back(&mut self, at: PhysAddr, bytes: u64);
}

/// Waits until `is_done` returns true.
///
/// # Errors
/// [`Problem::NoAnswer`] with the name of what was waited for, after a second.
pub fn wait_for<R: Registers>(
    registers: &mut R,
    what: &'static str,
    mut is_done: impl FnMut(&mut R) -> bool,
) -> Result<(), Problem> {
    for _ in 0..WAIT_US {
        if is_done(registers) {
            return Ok(());
        }
        registers.pause();
    }
    Err(Problem::NoAnswer { what })
}
