// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoded instructions that a processor has used lately: a kernel reaches its local APIC from a handful of places, and decoding is most of
//! what such an exit costs. An entry is found by the bytes themselves, read anew each time: code that changes is decoded anew.

use super::Access;
use crate::instruction::Bytes;

/// One each for writes, reads and EOIs of the local APIC, and one for everything else.
const PLACES: usize = 4;

/// The last few. They say nothing about the guest's state, and need not be kept over an update.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    entries: [Option<Entry>; PLACES],
    /// Which one makes room next.
    next: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    bytes: Bytes,
    bitness: u32,
    access: Access,
}

impl Recent {
    /// What these bytes are in this mode, at `rip`.
    #[inline]
    pub(super) fn find(&self, bytes: &Bytes, bitness: u32, rip: u64) -> Option<Access> {
        let is_it = |entry: &&Entry| entry.bitness == bitness && entry.bytes == *bytes;
        let mut access = self.entries.iter().flatten().find(is_it)?.access;
        access.instruction.set_ip(rip);
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
