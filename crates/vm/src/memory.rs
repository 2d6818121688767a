// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to a guest's memory.
//!
//! Another vCPU may write the same bytes at the same time, so nothing is ever borrowed out of guest
//! memory: bytes are copied in or out, and what was copied out is checked after the copy, never before.

use core::fmt;

use crate::addr::{AccessSize, Gpa};

/// The range `[gpa, gpa + bytes)` is not all guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// First address of the access.
    pub gpa: Gpa,
    /// Length of the access in bytes.
    pub bytes: usize,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at guest address {} are not guest memory", self.bytes, self.gpa)
    }
}

/// Memory as one guest sees it. Implementations check every range; a refused access changes nothing.
pub trait GuestMemory {
    /// Copies `into.len()` bytes out of guest memory.
    fn read(&self, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange>;

    /// Copies `from` into guest memory.
    fn write(&self, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange>;

    /// Reads one aligned quadword in a single access (page-table entries are updated by the guest concurrently).
    fn read_u64(&self, gpa: Gpa) -> Result<u64, OutOfRange> {
        let mut bytes = [0; 8];
        self.read(gpa, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Replaces `old` by `new` in one locked access if it is there still; returns whether it was. For entries of page
    /// tables: an aligned doubleword or quadword.
    fn compare_exchange(&self, gpa: Gpa, size: AccessSize, old: u64, new: u64) -> Result<bool, OutOfRange>;

    /// Returns whether an address is memory that the guest gets when it touches it.
    fn is_on_demand(&self, gpa: Gpa) -> bool {
        let _ = gpa;
        false
    }

    /// Bytes of guest memory in all (holes not counted).
    fn size_bytes(&self) -> u64;
}

impl ::virtio::Memory for dyn GuestMemory + '_ {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ::virtio::Outside> {
        GuestMemory::read(self, Gpa(address), into).map_err(outside)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), ::virtio::Outside> {
        GuestMemory::write(self, Gpa(address), from).map_err(outside)
    }
}

fn outside(OutOfRange { gpa, bytes }: OutOfRange) -> ::virtio::Outside {
    ::virtio::Outside { address: gpa.0, bytes }
}
