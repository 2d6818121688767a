// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the fields of a split virtqueue are (section 2.7).

use crate::fault::Fault;
use crate::memory::{Memory, Outside};

pub(crate) const DESCRIPTOR_BYTES: u64 = 16;
const DESCRIPTOR_ALIGNMENT: u64 = 16;
const AVAILABLE_ALIGNMENT: u64 = 2;
const USED_ALIGNMENT: u64 = 4;
/// In both rings: flags, then the index, then the entries.
const INDEX: u64 = 2;
const ENTRIES: u64 = 4;
const AVAILABLE_ENTRY_BYTES: u64 = 2;
const USED_ENTRY_BYTES: u64 = 8;

/// Where a driver has put the parts of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The descriptor table.
    pub descriptors: u64,
    /// The available ring.
    pub driver: u64,
    /// The used ring.
    pub device: u64,
}

impl Addresses {
    /// Checks alignments (table of section 2.7).
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let parts = [
            (self.descriptors, DESCRIPTOR_ALIGNMENT),
            (self.driver, AVAILABLE_ALIGNMENT),
            (self.device, USED_ALIGNMENT),
        ];
        match parts.into_iter().find(|(address, alignment)| !address.is_multiple_of(*alignment)) {
            Some((address, _)) => Err(Fault::Misaligned { address }),
            None => Ok(()),
        }
    }

    pub(crate) fn available_flags(&self) -> u64 {
        self.driver
    }

    pub(crate) fn available_index(&self) -> u64 {
        self.driver.wrapping_add(INDEX)
    }

    /// The entry of a ring with `size` entries that an index names.
    pub(crate) fn available_entry(&self, index: u16, size: u16) -> u64 {
        self.driver.wrapping_add(ENTRIES + AVAILABLE_ENTRY_BYTES * u64::from(index & (size - 1)))
    }

    pub(crate) fn used_event(&self, size: u16) -> u64 {
        self.driver.wrapping_add(ENTRIES + AVAILABLE_ENTRY_BYTES * u64::from(size))
    }

    pub(crate) fn used_flags(&self) -> u64 {
        self.device
    }

    pub(crate) fn used_index(&self) -> u64 {
        self.device.wrapping_add(INDEX)
    }

    pub(crate) fn used_entry(&self, index: u16, size: u16) -> u64 {
        self.device.wrapping_add(ENTRIES + USED_ENTRY_BYTES * u64::from(index & (size - 1)))
    }

    pub(crate) fn available_event(&self, size: u16) -> u64 {
        self.device.wrapping_add(ENTRIES + USED_ENTRY_BYTES * u64::from(size))
    }
}

pub(crate) fn read_u16<M: Memory + ?Sized>(memory: &M, address: u64) -> Result<u16, Outside> {
    let mut bytes = [0; 2];
    memory.read(address, &mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

pub(crate) fn write_u16<M: Memory + ?Sized>(memory: &M, address: u64, value: u16) -> Result<(), Outside> {
    memory.write(address, &value.to_le_bytes())
}
