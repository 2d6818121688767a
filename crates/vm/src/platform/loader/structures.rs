// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placement of the boot structures of PVH and Multiboot kernels: at their usual addresses, or around a kernel that
//! lies there.
//!
//! Nothing of the loader's must survive once the kernel runs, so a kernel may lie wherever the guest has memory. The
//! structures must survive until then. Kernels of both kinds find them by pointers, wherever they are.

use super::LoadError;
use super::elf::Segment;
use super::memory_map::low_memory_end;
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::platform::layout::{self, boot};

const PAGE_BYTES: u64 = 0x1000;
/// The first page stays empty, so that no pointer is zero.
const LOWEST: u64 = PAGE_BYTES;

/// Addresses of a kernel's boot structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Structures {
    /// Descriptor table of the entry state.
    pub gdt: Gpa,
    /// PVH start info or Multiboot information.
    pub info: Gpa,
    /// Memory map and module list.
    pub lists: Gpa,
    /// Command lines.
    pub command_lines: Gpa,
    /// Modules lie at this address or above.
    pub floor: u64,
}

impl Structures {
    /// Places for a kernel that ends at `kernel_end`.
    ///
    /// # Errors
    /// There is no place below 640 KiB, and none behind the kernel.
    pub fn around(memory: &impl GuestMemory, segments: &[Segment], kernel_end: u64) -> Result<Self, LoadError> {
        let memory_end = low_memory_end(memory.size_bytes());
        let mut taken = Taken { segments, tables: None, floor: kernel_end.max(layout::KERNEL.0), memory_end };
        let tables = taken.place(boot::GDT.0, boot::LISTS.0 + PAGE_BYTES - boot::GDT.0)?;
        taken.tables = Some(tables);
        let command_lines = taken.place(boot::COMMAND_LINE.0, boot::COMMAND_LINE_BYTES as u64)?;
        let at = |usual: Gpa| Gpa(tables.0 + (usual.0 - boot::GDT.0));
        Ok(Self {
            gdt: at(boot::GDT),
            info: at(boot::INFO),
            lists: at(boot::LISTS),
            command_lines: Gpa(command_lines.0),
            floor: taken.floor,
        })
    }
}

/// Memory that is in use already.
struct Taken<'a> {
    segments: &'a [Segment],
    /// Start and end of the structures that have been placed.
    tables: Option<(u64, u64)>,
    floor: u64,
    memory_end: u64,
}

impl Taken<'_> {
    /// Start and end of a place for `bytes` bytes: the usual one, else the lowest below 640 KiB, else the first page
    /// behind the kernel.
    fn place(&mut self, usual: u64, bytes: u64) -> Result<(u64, u64), LoadError> {
        let ends = self.segments.iter().map(Segment::end).chain(self.tables.map(|(_, end)| end));
        let starts = ends.map(|end| end.next_multiple_of(PAGE_BYTES).max(LOWEST));
        let low = |start: &u64| start + bytes <= layout::CONVENTIONAL_END.0 && self.is_free(*start, bytes);
        let lowest = starts.chain([LOWEST]).filter(low).min();
        if let Some(start) = Some(usual).filter(low).or(lowest) {
            return Ok((start, start + bytes));
        }
        let start = self.floor.next_multiple_of(PAGE_BYTES);
        let end = start + bytes;
        if end > self.memory_end {
            return Err(LoadError::KernelTooLarge { end, memory_bytes: self.memory_end });
        }
        self.floor = end;
        Ok((start, end))
    }

    fn is_free(&self, start: u64, bytes: u64) -> bool {
        let segments = self.segments.iter().map(|segment| (segment.physical, segment.end()));
        segments.chain(self.tables).all(|(from, to)| to <= start || start + bytes <= from)
    }
}
