// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structures of a table, one behind the other: each states its kind and its length.
//!
//! Both tables have the length in the third and fourth byte; Intel's kinds have two bytes, AMD's one and flags.

use firmware::table::Table;

/// Kind, or kind and flags, and length.
const HEADER_BYTES: u32 = 4;

/// A structure that lies within its table.
#[derive(Clone, Copy)]
pub(super) struct Block<'m> {
    table: Table<'m>,
    /// Its start in the table, in bytes.
    pub(super) offset: u32,
    /// Its length, header included.
    pub(super) bytes: u32,
    /// Its first two bytes.
    pub(super) head: [u8; 2],
}

impl Block<'_> {
    /// Returns `N` bytes from `at`, counted from the structure's first byte, if it has them.
    pub(super) fn array<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let end = at.checked_add(N as u32)?;
        (end <= self.bytes).then(|| self.table.array(self.offset + at)).flatten()
    }

    /// Returns the byte at `at`.
    pub(super) fn u8(&self, at: u32) -> Option<u8> {
        self.array(at).map(u8::from_le_bytes)
    }

    /// Returns the 16-bit field at `at`.
    pub(super) fn u16(&self, at: u32) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    /// Returns the 32-bit field at `at`.
    pub(super) fn u32(&self, at: u32) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Returns the 64-bit field at `at`.
    pub(super) fn u64(&self, at: u32) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}

/// The structures of a table. One with an invalid length is the last: the ones behind it cannot be found.
pub(super) struct Blocks<'m> {
    table: Table<'m>,
    next: u32,
}

impl<'m> Blocks<'m> {
    /// Returns the structures from the byte `start` on.
    pub(super) const fn new(table: Table<'m>, start: u32) -> Self {
        Self { table, next: start }
    }
}

impl<'m> Iterator for Blocks<'m> {
    /// A structure, or the offset of one that is cut short.
    type Item = Result<Block<'m>, u32>;

    fn next(&mut self) -> Option<Self::Item> {
        let (table, offset) = (self.table, self.next);
        if offset >= table.bytes() {
            return None;
        }
        self.next = u32::MAX;
        let Some([first, second, length @ ..]) = table.array::<4>(offset) else { return Some(Err(offset)) };
        let bytes = u32::from(u16::from_le_bytes(length));
        if bytes < HEADER_BYTES || bytes > table.bytes() - offset {
            return Some(Err(offset));
        }
        self.next = offset + bytes;
        Some(Ok(Block { table, offset, bytes, head: [first, second] }))
    }
}
