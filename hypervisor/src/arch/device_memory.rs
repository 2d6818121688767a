// SPDX-License-Identifier: MIT OR Apache-2.0
//! Address ranges and ports of PCI functions that guests have, as far as the host accesses them: MSI-X tables, ports,
//! and memory that is not mapped for the guest.

use alloc::vec::Vec;

use spin::Mutex;
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};
use vm::addr::AccessSize;

use super::memory::{self, MemoryError};
use super::{address, port};

/// Ranges are mapped between these, one behind the other.
const FIRST: u64 = address::DEVICES + (1 << 40);
const END: u64 = address::DEVICES + (8 << 40);

/// A PC's fixed devices have ports below.
const FIRST_PCI_PORT: u16 = 0x1000;

/// Ranges that are mapped. They stay so: a function's next owner finds them mapped, and no CPU has to flush one.
static MAPPED: Mutex<Mapped> = Mutex::new(Mapped { next: FIRST, ranges: Vec::new() });

struct Mapped {
    next: u64,
    /// Each with its virtual address.
    ranges: Vec<(PhysRange, u64)>,
}

/// A range of a function's, mapped uncached.
#[derive(Clone, Copy, Debug)]
pub struct DeviceMemory {
    at: u64,
    bytes: u64,
}

impl DeviceMemory {
    /// Maps a range that is no memory, and neither the host's nor another function's.
    ///
    /// # Errors
    /// [`MemoryError`] if it cannot be mapped.
    pub fn map(range: PhysRange) -> Result<Self, MemoryError> {
        let pages = range.aligned_outwards(PAGE_BYTES).ok_or(MemoryError::OutOfMemory)?;
        let at = MAPPED.lock().find_or_map(pages)?;
        Ok(Self { at: at + (range.start().0 - pages.start().0), bytes: range.bytes() })
    }

    /// Reads at a multiple of the size. Outside of the range all bits are one.
    pub fn read(self, offset: u64, size: AccessSize) -> u64 {
        let Some(at) = self.address(offset, size) else { return size.mask() };
        // SAFETY: inside of the range, which is mapped uncached for ever, and aligned. A function's owner reads it, or
        // the host does for it; what a read changes in the function is the owner's business.
        unsafe {
            match size {
                AccessSize::Byte => u64::from((at as *const u8).read_volatile()),
                AccessSize::Word => u64::from((at as *const u16).read_volatile()),
                AccessSize::Dword => u64::from((at as *const u32).read_volatile()),
                AccessSize::Qword => (at as *const u64).read_volatile(),
            }
        }
    }

    /// Writes, likewise. Outside of the range nothing is written.
    pub fn write(self, offset: u64, size: AccessSize, value: u64) {
        let Some(at) = self.address(offset, size) else { return };
        // SAFETY: as in `read`. The IOMMU bounds what the function does then.
        unsafe {
            match size {
                AccessSize::Byte => (at as *mut u8).write_volatile(value as u8),
                AccessSize::Word => (at as *mut u16).write_volatile(value as u16),
                AccessSize::Dword => (at as *mut u32).write_volatile(value as u32),
                AccessSize::Qword => (at as *mut u64).write_volatile(value),
            }
        }
    }

    fn address(self, offset: u64, size: AccessSize) -> Option<u64> {
        let bytes = size.bytes() as u64;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        (is_inside && offset.is_multiple_of(bytes)).then_some(self.at + offset)
    }
}

/// Ports of a function's.
#[derive(Clone, Copy, Debug)]
pub struct DevicePorts {
    first: u16,
    count: u16,
}

impl DevicePorts {
    /// Ports that are a function's alone; `None` below those that PCI functions have: the host's own are there.
    pub const fn new(first: u16, count: u16) -> Option<Self> {
        let is_possible = first >= FIRST_PCI_PORT && count > 0 && first.checked_add(count - 1).is_some();
        if is_possible { Some(Self { first, count }) } else { None }
    }

    /// Reads at a multiple of the size, which is at most four bytes. Outside of the range all bits are one.
    pub fn read(self, offset: u64, size: AccessSize) -> u64 {
        let Some(port) = self.port(offset, size) else { return size.mask() };
        // SAFETY: a function's port, which its owner reads, or the host does for it.
        unsafe {
            match size {
                AccessSize::Byte => u64::from(port::read_u8(port)),
                AccessSize::Word => u64::from(port::read_u16(port)),
                _ => u64::from(port::read_u32(port)),
            }
        }
    }

    /// Writes, likewise. Outside of the range nothing is written.
    pub fn write(self, offset: u64, size: AccessSize, value: u64) {
        let Some(port) = self.port(offset, size) else { return };
        // SAFETY: as in `read`. The IOMMU bounds what the function does then.
        unsafe {
            match size {
                AccessSize::Byte => port::write_u8(port, value as u8),
                AccessSize::Word => port::write_u16(port, value as u16),
                _ => port::write_u32(port, value as u32),
            }
        }
    }

    fn port(self, offset: u64, size: AccessSize) -> Option<u16> {
        let bytes = size.bytes() as u64;
        let is_inside = size != AccessSize::Qword && offset.saturating_add(bytes) <= u64::from(self.count);
        (is_inside && offset.is_multiple_of(bytes)).then(|| self.first + offset as u16)
    }
}

impl Mapped {
    fn find_or_map(&mut self, pages: PhysRange) -> Result<u64, MemoryError> {
        if let Some((_, at)) = self.ranges.iter().find(|(range, _)| *range == pages) {
            return Ok(*at);
        }
        // So that large pages fit.
        let alignment = pages.bytes().next_power_of_two().clamp(PAGE_BYTES, PageSize::Gib1.bytes());
        let at = PhysAddr(self.next).align_up(alignment).ok_or(MemoryError::OutOfMemory)?.0;
        let next = at.checked_add(pages.bytes()).filter(|end| *end <= END).ok_or(MemoryError::OutOfMemory)?;
        memory::map_device(at, pages.start().0, pages.bytes())?;
        self.next = next;
        self.ranges.push((pages, at));
        Ok(at)
    }
}
