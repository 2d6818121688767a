// SPDX-License-Identifier: MIT OR Apache-2.0
//! Following a chain through the descriptor table, and at most one indirect table (sections 2.7.5 and 2.7.5.3).

use super::{CHAIN_SEGMENTS, Chain, Segment};
use crate::fault::Fault;
use crate::memory::{Memory, Outside};
use crate::rings::DESCRIPTOR_BYTES;

pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const INDIRECT: u16 = 4;

/// A table of descriptors.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub address: u64,
    pub entries: u16,
    /// A chain in it may end in an indirect table.
    pub has_indirect: bool,
}

/// A descriptor, read once.
struct Descriptor {
    address: u64,
    bytes: u32,
    flags: u16,
    next: u16,
}

impl Chain {
    /// Makes this the chain that begins at a descriptor. Each descriptor fills a segment or leads to the only indirect
    /// table, so that a loop ends with the room for segments.
    pub(crate) fn follow<M: Memory + ?Sized>(&mut self, memory: &M, head: u16, table: Table) -> Result<(), Fault> {
        self.clear(head);
        let (mut table, mut number) = (table, head);
        loop {
            let descriptor = table.read(memory, number)?;
            if descriptor.flags & INDIRECT != 0 {
                (table, number) = (table.indirect(&descriptor)?, 0);
                continue;
            }
            self.add(&descriptor)?;
            if descriptor.flags & NEXT == 0 {
                return Ok(());
            }
            number = descriptor.next;
        }
    }

    fn clear(&mut self, head: u16) {
        self.segments.clear();
        (self.head, self.readable, self.readable_bytes, self.writable_bytes) = (head, 0, 0, 0);
    }

    fn add(&mut self, descriptor: &Descriptor) -> Result<(), Fault> {
        let Descriptor { address, bytes, flags, .. } = *descriptor;
        let is_writable = flags & WRITE != 0;
        if !is_writable && self.readable < self.segments.len() {
            return Err(Fault::ReadableBehindWritable);
        }
        // All of a chain is below 2^32 bytes (2.7.5.2), so that no sum of lengths overflows.
        let total = self.readable_bytes.checked_add(self.writable_bytes).and_then(|total| total.checked_add(bytes));
        if total.is_none() || address.checked_add(bytes.into()).is_none() {
            return Err(Fault::TooManyBytes);
        }
        self.segments.try_push(Segment { address, bytes }).map_err(|_| Fault::ChainTooLong)?;
        if is_writable {
            self.writable_bytes += bytes;
        } else {
            (self.readable, self.readable_bytes) = (self.readable + 1, self.readable_bytes + bytes);
        }
        Ok(())
    }
}

impl Table {
    fn read<M: Memory + ?Sized>(&self, memory: &M, number: u16) -> Result<Descriptor, Fault> {
        if number >= self.entries {
            return Err(Fault::NoSuchDescriptor { number });
        }
        let mut bytes = [0; DESCRIPTOR_BYTES as usize];
        let outside = Outside { address: self.address, bytes: bytes.len() };
        let place = self.address.checked_add(DESCRIPTOR_BYTES * u64::from(number)).ok_or(outside)?;
        memory.read(place, &mut bytes)?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, flags @ .., next_low, next_high] = bytes;
        Ok(Descriptor {
            address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            bytes: u32::from_le_bytes([i, j, k, l]),
            flags: u16::from_le_bytes(flags),
            next: u16::from_le_bytes([next_low, next_high]),
        })
    }

    /// The table that an indirect descriptor names. Whether it is writable means nothing (2.7.5.3.2).
    fn indirect(&self, descriptor: &Descriptor) -> Result<Self, Fault> {
        let Descriptor { address, bytes, flags, .. } = *descriptor;
        if !self.has_indirect || flags & NEXT != 0 {
            return Err(Fault::WrongIndirect);
        }
        if bytes == 0 || !u64::from(bytes).is_multiple_of(DESCRIPTOR_BYTES) {
            return Err(Fault::IndirectLength { bytes });
        }
        let entries = u64::from(bytes) / DESCRIPTOR_BYTES;
        // A chain may use fewer entries than there are.
        let entries = entries.min(CHAIN_SEGMENTS as u64) as u16;
        Ok(Self { address, entries, has_indirect: false })
    }
}
