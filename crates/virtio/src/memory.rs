// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of the driver, as a device reaches it.

/// A range that is not all memory: it is nowhere, wraps around, or has device registers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The first address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Memory that others write at the same time. An aligned access of two, four or eight bytes is one access, no access is
/// repeated, and accesses are in program order as seen from the calling CPU.
pub trait Memory {
    /// Copies `into.len()` bytes out of memory.
    ///
    /// # Errors
    /// [`Outside`] if the range is not all memory.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Outside>;

    /// Copies `from` into memory.
    ///
    /// # Errors
    /// [`Outside`] if the range is not all memory; then nothing is written.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Outside>;
}
