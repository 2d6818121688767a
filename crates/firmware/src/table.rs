// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table's bytes, checked (ACPI 6.5, section 5.2.6).
//!
//! A [`Table`] is an address and a length; its bytes added up to zero when it was opened. Its fields are copied out
//! when asked for; one that lies past the length is absent, which is also how older, shorter revisions of a table read.
//! The revision itself is believed only where it gives reserved bits a meaning: firmware is known to understate it.

use crate::memory::PhysicalMemory;
use crate::problem::Fault;

pub use crate::signature::Signature;

/// A table larger than this is refused. Real ones reach some hundred KiB (the DSDT of a large server).
pub const MAX_TABLE_BYTES: u32 = 4 << 20;

/// Bytes of the header that every table begins with.
pub const HEADER_BYTES: u32 = 36;

const REVISION_AT: u32 = 8;

/// A table that was all readable and added up to zero.
#[derive(Clone, Copy)]
pub struct Table<'m> {
    memory: &'m dyn PhysicalMemory,
    address: u64,
    bytes: u32,
    revision: u8,
}

impl<'m> Table<'m> {
    /// The table `signature` at physical `address`, of at least `minimum_bytes`.
    pub fn open(
        memory: &'m dyn PhysicalMemory,
        address: u64,
        signature: Signature,
        minimum_bytes: u32,
    ) -> Result<Self, Fault> {
        let mut start = [0; 8];
        memory.read(address, &mut start).map_err(|_| Fault::Unreadable { address })?;
        let [a, b, c, d, length @ ..] = start;
        let bytes = u32::from_le_bytes(length);
        if Signature([a, b, c, d]) != signature {
            return Err(Fault::WrongSignature { address });
        }
        if bytes < minimum_bytes.max(HEADER_BYTES) {
            return Err(Fault::TooShort { bytes, needed: minimum_bytes.max(HEADER_BYTES) });
        }
        if bytes > MAX_TABLE_BYTES {
            return Err(Fault::TooLong { bytes, at_most: MAX_TABLE_BYTES });
        }
        match sum(memory, address, bytes)? {
            0 => {}
            sum => return Err(Fault::BadChecksum { sum }),
        }
        let mut revision = 0;
        read(memory, address, REVISION_AT, core::slice::from_mut(&mut revision))?;
        Ok(Self { memory, address, bytes, revision })
    }

    /// Its revision. Later ones append fields, and give a meaning to bits that were reserved; 0 is none.
    pub fn revision(&self) -> u8 {
        self.revision
    }

    /// Its physical address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The memory the table is in.
    pub fn memory(&self) -> &'m dyn PhysicalMemory {
        self.memory
    }

    /// Its length in bytes, header included.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Copies the bytes from `offset` on, at most `into.len()`; returns the bytes copied.
    pub fn read_some<'b>(&self, offset: u32, into: &'b mut [u8]) -> Result<&'b [u8], Fault> {
        let left = self.bytes.saturating_sub(offset) as usize;
        let count = left.min(into.len());
        read(self.memory, self.address, offset, &mut into[..count])?;
        Ok(&into[..count])
    }

    /// `N` bytes from `offset` on, if the table has them.
    pub fn array<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let copied = self.read_some(offset, &mut bytes).ok()?.len();
        (copied == N).then_some(bytes)
    }

    /// The byte at `offset`, if the table has it.
    pub fn u8(&self, offset: u32) -> Option<u8> {
        self.array(offset).map(u8::from_le_bytes)
    }

    /// The 16-bit field at `offset`, if the table has it.
    pub fn u16(&self, offset: u32) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    /// The 32-bit field at `offset`, if the table has it.
    pub fn u32(&self, offset: u32) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    /// The 64-bit field at `offset`, if the table has it.
    pub fn u64(&self, offset: u32) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
}

/// The name of the table at `address`, believed to be one; nothing else is checked.
pub(crate) fn signature_at(memory: &dyn PhysicalMemory, address: u64) -> Result<Signature, Fault> {
    let mut name = [0; 4];
    memory.read(address, &mut name).map_err(|_| Fault::Unreadable { address })?;
    Ok(Signature(name))
}

/// Returns the sum of `bytes` bytes from `address` on.
pub(crate) fn sum(memory: &dyn PhysicalMemory, address: u64, bytes: u32) -> Result<u8, Fault> {
    let mut chunk = [0; 256];
    let mut total = 0u8;
    let mut offset = 0;
    while offset < bytes {
        let count = (bytes - offset).min(chunk.len() as u32);
        let chunk = &mut chunk[..count as usize];
        read(memory, address, offset, chunk)?;
        total = chunk.iter().fold(total, |total, &byte| total.wrapping_add(byte));
        offset += count;
    }
    Ok(total)
}

fn read(memory: &dyn PhysicalMemory, address: u64, offset: u32, into: &mut [u8]) -> Result<(), Fault> {
    let start = address.checked_add(u64::from(offset)).ok_or(Fault::Unreadable { address })?;
    memory.read(start, into).map_err(|_| Fault::Unreadable { address: start })
}
