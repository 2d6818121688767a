// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoded instructions that a CPU has used lately: a kernel reaches its local APIC from a handful of places, and
//! decoding is most of what such an exit costs. An entry is found by the bytes themselves, read again each time: code
//! that changes is decoded again.

use super::Access;
use crate::machine::instruction::Bytes;

/// One each for writes, reads and EOIs of the local APIC, and one for everything else.
const PLACES: usize = 4;

/// The last few. They do not belong to the guest's state, and need not be kept over an update.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    entries: [Option<Entry>; PLACES],
    /// Index of the entry that is replaced next.
    next: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    bytes: Bytes,
    bitness: u32,
    access: Access,
}

impl Recent {
    /// Returns the instruction in these bytes in this mode, at `rip`.
    #[inline]
    pub(super) fn find(&self, bytes: &Bytes, bitness: u32, rip: u64) -> Option<Access> {
        let is_it = |entry: &&Entry| entry.bitness == bitness && entry.bytes == *bytes;
        let mut access = self.entries.iter().flatten().find(is_it)?.access;
        let moved = rip.wrapping_sub(access.instruction.ip());
        access.instruction.set_ip(rip);
        if moved != 0 && access.instruction.is_ip_rel_memory_operand() {
            let displacement = access.instruction.memory_displacement64().wrapping_add(moved);
            access.instruction.set_memory_displacement64(displacement);
        }
        Some(access)
    }

    /// Remembers it in the place of the one that came before all others.
    pub(super) fn keep(&mut self, bytes: Bytes, bitness: u32, access: Access) {
        self.entries[self.next % PLACES] = Some(Entry { bytes, bitness, access });
        self.next = (self.next + 1) % PLACES;
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
