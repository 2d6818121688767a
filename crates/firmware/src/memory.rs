// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that the tables are in.

/// The machine's physical memory, as the caller can reach it.
pub trait PhysicalMemory {
    /// Copies the `into.len()` bytes from physical `address` on. An address that is not memory of the machine, or not
    /// mapped, is [`Unreadable`]; `into` is then unspecified. The addresses come from firmware and may be anything.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable>;
}

/// There is no memory, or no access to it, where a read was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;
