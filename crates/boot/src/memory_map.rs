// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory map, normalised.
//!
//! Firmware's maps overlap, come unsorted, end inside pages and now and then wrap around the end of the address space.
//! [`MapBuilder`] takes entries as they come; [`MemoryMap`] holds regions that are sorted, disjoint and whole pages.
//! Where entries overlap, also within one page, the more restrictive kind wins.

use core::fmt;

use arrayvec::ArrayVec;
use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr, PhysRange};

/// Entries that are taken in, and regions that come out, at most.
pub const MAXIMUM_REGIONS: usize = 128;

/// Permitted use of a region (ACPI 6.5, section 15.1), the least restrictive first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegionKind {
    /// Memory for any use.
    Usable,
    /// ACPI tables: memory for any use once the tables have been read.
    AcpiReclaimable,
    /// Persistent memory: never to be used as plain memory.
    Persistent,
    /// Memory of the firmware's that must be kept.
    AcpiNvs,
    /// Not to be touched.
    Reserved,
    /// Memory with errors.
    Unusable,
}

impl RegionKind {
    /// The kind for an address range type of the firmware; unknown ones are reserved.
    pub const fn from_acpi_type(number: u32) -> Self {
        match number {
            1 => Self::Usable,
            3 => Self::AcpiReclaimable,
            4 => Self::AcpiNvs,
            5 => Self::Unusable,
            7 => Self::Persistent,
            _ => Self::Reserved,
        }
    }

    /// The kind for a memory type of EFI's once its boot services have ended (UEFI 2.10, section 7.2); unknown ones are
    /// reserved.
    pub const fn from_efi_type(number: u32) -> Self {
        match number {
            // Loader's, boot services', conventional.
            1..=4 | 7 => Self::Usable,
            8 => Self::Unusable,
            9 => Self::AcpiReclaimable,
            10 => Self::AcpiNvs,
            14 => Self::Persistent,
            _ => Self::Reserved,
        }
    }
}

impl RegionKind {
    /// The firmware's number for it.
    pub const fn to_acpi_type(self) -> u32 {
        match self {
            Self::Usable => 1,
            Self::Reserved => 2,
            Self::AcpiReclaimable => 3,
            Self::AcpiNvs => 4,
            Self::Unusable => 5,
            Self::Persistent => 7,
        }
    }
}

impl fmt::Display for RegionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Usable => "usable",
            Self::AcpiReclaimable => "ACPI tables",
            Self::Persistent => "persistent",
            Self::AcpiNvs => "ACPI non-volatile",
            Self::Reserved => "reserved",
            Self::Unusable => "unusable",
        })
    }
}

/// Whole pages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Range of the region.
    pub range: PhysRange,
    /// Permitted use.
    pub kind: RegionKind,
}

/// More entries than [`MAXIMUM_REGIONS`]. None is left out unreported: one of them might reserve memory that another
/// offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRegions;

impl fmt::Display for TooManyRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the memory map has more than {MAXIMUM_REGIONS} entries")
    }
}

impl core::error::Error for TooManyRegions {}

/// Sorted, disjoint regions of whole pages; two that touch differ in kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryMap(ArrayVec<Region, MAXIMUM_REGIONS>);

impl MemoryMap {
    /// All regions, by rising address.
    pub fn regions(&self) -> &[Region] {
        &self.0
    }

    /// The usable ones.
    pub fn usable(&self) -> impl Iterator<Item = PhysRange> + '_ {
        self.0.iter().filter(|region| region.kind == RegionKind::Usable).map(|region| region.range)
    }

    /// Returns how much memory is usable.
    pub fn usable_bytes(&self) -> u64 {
        self.usable().map(PhysRange::bytes).sum()
    }

    /// Returns the permitted use of the page of `address`; `None` if the map does not mention it.
    pub fn kind_at(&self, address: PhysAddr) -> Option<RegionKind> {
        self.0.iter().find(|region| region.range.contains(address)).map(|region| region.kind)
    }

    /// Adds a region behind the last one, joining the two if they are one.
    fn append(&mut self, region: Region) -> Result<(), TooManyRegions> {
        match self.0.last_mut() {
            Some(last) if last.kind == region.kind && last.range.end() == region.range.start() => {
                last.range = PhysRange::new(last.range.start(), region.range.end()).unwrap_or(last.range);
                Ok(())
            }
            _ => self.0.try_push(region).map_err(|_| TooManyRegions),
        }
    }
}

/// Takes a loader's entries as they come.
#[derive(Clone, Debug, Default)]
pub struct MapBuilder {
    entries: ArrayVec<Region, MAXIMUM_REGIONS>,
    absurd: usize,
}

impl MapBuilder {
    /// Adds an entry. One without a byte inside the 52 bits of physical addresses is left out and counted; one that
    /// runs past them is cut there.
    ///
    /// # Errors
    /// [`TooManyRegions`] if no further entry can be held.
    pub fn add(&mut self, start: PhysAddr, bytes: u64, kind: RegionKind) -> Result<(), TooManyRegions> {
        let end = PhysAddr(start.0.saturating_add(bytes).min(PHYSICAL_LIMIT));
        let Some(range) = PhysRange::new(start, end).filter(|range| !range.is_empty()) else {
            self.absurd += 1;
            return Ok(());
        };
        // Usable memory shrinks to whole pages, everything else grows; below 2^52 growing cannot overflow.
        let range = match kind {
            RegionKind::Usable => range.aligned_inwards(PAGE_BYTES),
            _ => range.aligned_outwards(PAGE_BYTES).unwrap_or(range),
        };
        if range.is_empty() {
            return Ok(());
        }
        match self.entries.last_mut().filter(|last| last.kind == kind && last.range.end() == range.start()) {
            // EFI's maps have hundreds of entries, of which most go on where the one before ends.
            Some(last) => last.range = PhysRange::new(last.range.start(), range.end()).unwrap_or(last.range),
            None => self.entries.try_push(Region { range, kind }).map_err(|_| TooManyRegions)?,
        }
        Ok(())
    }

    /// Returns how many entries were invalid.
    pub fn absurd_entries(&self) -> usize {
        self.absurd
    }

    /// The map: between any two edges of entries, the most restrictive kind that covers the stretch.
    ///
    /// # Errors
    /// [`TooManyRegions`] if the entries cut each other into more regions than a map holds.
    pub fn finish(self) -> Result<MemoryMap, TooManyRegions> {
        let mut edges: ArrayVec<PhysAddr, { 2 * MAXIMUM_REGIONS }> =
            self.entries.iter().flat_map(|entry| [entry.range.start(), entry.range.end()]).collect();
        sort::ascending(&mut edges);
        let mut map = MemoryMap::default();
        let stretches = edges.windows(2).filter_map(|pair| PhysRange::new(pair[0], pair[1]));
        for range in stretches.filter(|range| !range.is_empty()) {
            let covering = self.entries.iter().filter(|entry| entry.range.contains(range.start()));
            if let Some(kind) = covering.map(|entry| entry.kind).max() {
                map.append(Region { range, kind })?;
            }
        }
        Ok(map)
    }
}
