// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory map as a guest is shown it: the same entries for Linux (E820), PVH and Multiboot, which share the
//! numbers.

use arrayvec::ArrayVec;

use crate::addr::Gpa;
use crate::platform::layout;

/// Type of a range of guest-physical addresses, numbered as E820 does (ACPI 6.5, table 15.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemoryKind {
    /// Memory for the kernel to use.
    Usable = 1,
    /// Not to be used.
    Reserved = 2,
    /// ACPI tables: usable once they have been read.
    Acpi = 3,
}

/// One range of guest-physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// First address.
    pub start: Gpa,
    /// Its bytes; never zero.
    pub bytes: u64,
    /// Type.
    pub kind: MemoryKind,
}

/// The most entries a map can have.
pub const MAX_MAP_ENTRIES: usize = 6;
/// A whole map, ascending, without overlaps.
pub type MemoryMap = ArrayVec<MapEntry, MAX_MAP_ENTRIES>;

/// Returns where the first stretch of memory ends, for a guest of `memory_bytes` bytes.
pub(super) fn low_memory_end(memory_bytes: u64) -> u64 {
    memory_bytes.min(layout::LOW_MEMORY_END.0)
}

/// The map of a guest with `memory_bytes` bytes of memory (what is hidden below 1 MiB counted in).
pub fn memory_map(memory_bytes: u64) -> MemoryMap {
    let low_end = low_memory_end(memory_bytes);
    let tables = layout::ACPI_TABLES.0;
    let tables_end = tables + layout::ACPI_TABLES_BYTES as u64;
    let ecam_end = layout::ECAM.0 + layout::ECAM_BYTES;
    let high_end = layout::HIGH_MEMORY.0.saturating_add(memory_bytes - low_end);
    let ranges = [
        (0, low_end.min(layout::CONVENTIONAL_END.0), MemoryKind::Usable),
        (layout::CONVENTIONAL_END.0, tables, MemoryKind::Reserved),
        (tables, tables_end, MemoryKind::Acpi),
        (layout::KERNEL.0, low_end, MemoryKind::Usable),
        (layout::ECAM.0, ecam_end, MemoryKind::Reserved),
        (layout::HIGH_MEMORY.0, high_end, MemoryKind::Usable),
    ];
    ranges
        .into_iter()
        .filter(|&(start, end, _)| start < end)
        .map(|(start, end, kind)| MapEntry { start: Gpa(start), bytes: end - start, kind })
        .collect()
}
