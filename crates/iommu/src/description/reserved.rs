// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that devices use on behalf of firmware.

use core::fmt;

use pci::Bdf;
use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr, PhysRange};

/// Memory that functions reach at its own address, since before the host was started: a frame buffer, a table of an
/// emulated keyboard (IVMD, RMRR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Its addresses.
    pub range: PhysRange,
    /// The functions' segment group.
    pub segment: u16,
    /// The first function's requester identifier.
    pub first: u16,
    /// The last one's; not below the first's.
    pub last: u16,
    /// They may read it.
    pub is_readable: bool,
    /// They may write it.
    pub is_writable: bool,
    /// The unit is to pass accesses to it unchecked (AMD's exclusion range), which amounts to reading and writing.
    pub is_exclusion: bool,
    /// Why it must not be mapped as it is.
    pub defect: Option<Defect>,
    /// Its start in the table, in bytes.
    pub offset: u32,
}

impl Reserved {
    /// Returns whether it is for the function at `place`.
    pub fn is_for(&self, place: Bdf) -> bool {
        self.segment == place.segment && (self.first..=self.last).contains(&place.requester())
    }
}

/// Why memory that firmware claims for devices must not be given to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It holds nothing, or ends before it begins.
    Empty,
    /// It does not begin and end at a page.
    Misaligned,
    /// It goes past [`PHYSICAL_LIMIT`].
    BeyondLimit,
    /// Some of it is memory that the memory map offers for use.
    UsableMemory,
    /// Some of it is a unit's registers: a device that writes there is no longer confined.
    Registers,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::Misaligned => "does not begin and end at a page",
            Self::BeyondLimit => "ends beyond 52 bits of address",
            Self::UsableMemory => "is usable memory by the memory map",
            Self::Registers => "holds registers of an IOMMU",
        })
    }
}

/// Returns the range from `start` to `end`, and what is wrong with it. Without an end it goes past all addresses.
pub(super) fn range(start: u64, end: Option<u64>) -> (PhysRange, Option<Defect>) {
    let Some(range) = PhysRange::new(PhysAddr(start), PhysAddr(end.unwrap_or(u64::MAX))) else {
        return (PhysRange::from_start(PhysAddr(start), 0).unwrap_or_default(), Some(Defect::Empty));
    };
    let defect = match () {
        () if range.is_empty() => Some(Defect::Empty),
        () if end.is_none_or(|end| end > PHYSICAL_LIMIT) => Some(Defect::BeyondLimit),
        () if !range.is_aligned(PAGE_BYTES) => Some(Defect::Misaligned),
        () => None,
    };
    (range, defect)
}
