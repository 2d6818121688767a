// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seam to the machine: a controller's registers (NVM Express Base 2.0, section 3.1.3), and memory that it reaches.

/// Controller capabilities, 64 bits.
pub(crate) const CAP: u64 = 0x00;
/// Interrupt mask set.
pub(crate) const INTMS: u64 = 0x0c;
/// Controller configuration.
pub(crate) const CC: u64 = 0x14;
/// Controller status.
pub(crate) const CSTS: u64 = 0x1c;
/// Admin queue attributes: the sizes of both queues.
pub(crate) const AQA: u64 = 0x24;
/// Admin submission queue's address, 64 bits.
pub(crate) const ASQ: u64 = 0x28;
/// Admin completion queue's address, 64 bits.
pub(crate) const ACQ: u64 = 0x30;
/// The doorbell of the admin submission queue; its place does not depend on the stride.
pub(crate) const ADMIN_TAIL: u64 = 0x1000;

/// A controller's registers, in the range of its base address register 0. One that is gone reads as ones.
pub trait Registers {
    /// Reads 32 bits.
    fn read32(&mut self, offset: u64) -> u32;
    /// Writes 32 bits.
    fn write32(&mut self, offset: u64, value: u32);
    /// Waits about a microsecond.
    fn pause(&mut self);

    /// Reads 64 bits, the lower half first: a controller need not support wider accesses.
    fn read64(&mut self, offset: u64) -> u64 {
        let low = self.read32(offset);
        u64::from(self.read32(offset + 4)) << 32 | u64::from(low)
    }

    /// Writes 64 bits, likewise.
    fn write64(&mut self, offset: u64, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }
}

/// Memory that the controller reaches, and may write at any time.
pub trait Memory {
    /// Reads the eight bytes at `offset`, a multiple of eight.
    fn read(&mut self, offset: u64) -> u64;
    /// Writes them.
    fn write(&mut self, offset: u64, value: u64);
}
