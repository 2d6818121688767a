// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical memory before the host has page tables of its own.

use units::{PhysAddr, PhysRange};

use crate::arch::address::{BOOT_MAPPED_BYTES, DIRECT_MAP};
use crate::arch::image;

/// The far half of the boot stack, in which `linux.S` carries a 64-bit loader's words.
fn carried_words() -> Option<PhysRange> {
    const CARRIED_BYTES: u64 = 32 << 10;
    PhysRange::from_start(image::boot_stack_frames().start(), CARRIED_BYTES)
}

/// Physical memory as the boot page tables show it: the first 4 GiB, read-only.
///
/// Only for what is read before [`enter`](crate::arch::memory::enter): loader structures and firmware tables.
pub struct BootMemory;

impl boot::PhysicalMemory for BootMemory {
    fn bytes(&self, start: PhysAddr, bytes: usize) -> Option<&[u8]> {
        Self::bytes(self, start.0, bytes as u64)
    }
}

impl firmware::PhysicalMemory for BootMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), firmware::Unreadable> {
        let from = Self::bytes(self, address, into.len() as u64).ok_or(firmware::Unreadable)?;
        into.copy_from_slice(from);
        Ok(())
    }
}

impl BootMemory {
    /// The bytes at a physical address; `None` outside the first 4 GiB, in the image and in a PC's devices.
    pub fn bytes(&self, physical: u64, bytes: u64) -> Option<&'static [u8]> {
        let range = PhysRange::from_start(PhysAddr(physical), bytes)?;
        let is_placed = image::is_placed();
        let image = if is_placed { image::frames() } else { PhysRange::default() };
        let is_carried = is_placed && carried_words().is_some_and(|carried| carried.contains_range(range));
        if range.end().0 > BOOT_MAPPED_BYTES || !(is_carried || boot::may_be_read(range, image)) {
            return None;
        }
        let start = (DIRECT_MAP + physical) as *const u8;
        // SAFETY: the boot tables map the first 4 GiB readable. `may_be_read` keeps off the image, all that this code
        // writes to, and the devices of a PC, which reading could disturb: what else a loader or firmware names is
        // memory or nothing, and stays as it is while it is read, since no frame is given away before all this has been
        // read. Of the image only the boot stack's far half is shown, which that stack does not reach before its words
        // have been read.
        Some(unsafe { core::slice::from_raw_parts(start, bytes as usize) })
    }
}
