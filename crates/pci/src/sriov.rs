// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual functions that a physical one can have: its SR-IOV capability (PCI Express Base 5.0, section 9.3.3), read as
//! untrusted input. What it states holds for the settings that it has.
//!
//! | module | content |
//! |---|---|
//! | [`guest`] | the capability as the guest sees it that has the physical function |
//! | [`enabling`], `window`, `ari` | enabling virtual functions, at free addresses and where the port above passes requests; disabling them |
//! | [`overlay`] | configuration space in which virtual functions are functions like others |

mod ari;
pub mod enabling;
pub mod guest;
pub mod overlay;
mod window;

use core::fmt;
use core::ops::RangeInclusive;

use crate::{Bdf, ConfigSpace, Function, Kind, extended};

/// The extended capability's identifier, and its bytes.
const ID: u16 = 0x0010;
const BYTES: u16 = 0x40;
/// Words of the capability: what it can do; InitialVFs and TotalVFs; First VF Offset and VF Stride; VF Device ID in the
/// upper half; page sizes that it supports; the base address registers of all virtual functions.
const CAPABILITIES: u16 = 0x04;
const COUNTS: u16 = 0x0c;
const PLACES: u16 = 0x14;
const DEVICE: u16 = 0x18;
const PAGE_SIZES: u16 = 0x1c;
const BARS: [u16; 6] = [0x24, 0x28, 0x2c, 0x30, 0x34, 0x38];
/// Virtual functions migrate: there may be fewer at first.
const MIGRATES: u32 = 1 << 0;
/// Pages of 4 KiB, which each function has to support.
const PAGES_OF_4_KIB: u32 = 1 << 0;
const IS_PORTS: u32 = 1 << 0;
const KIND_OF_MEMORY: u32 = 0b110;
const IS_64: u32 = 0b100;

/// The virtual functions that a function states it can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualFunctions {
    /// The most that it can have; not 0.
    pub total: u16,
    /// Their device identifier; the vendor's is the function's own.
    pub device: u16,
    /// From the function's requester identifier to that of the first one.
    offset: u16,
    /// From one to the next.
    stride: u16,
}

/// The reason for which a function's virtual functions cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It has vanished.
    Vanished,
    /// Initial and total number contradict each other: they must be equal without migration.
    Counts {
        /// InitialVFs.
        initial: u16,
        /// TotalVFs.
        total: u16,
    },
    /// It does not support pages of 4 KiB.
    PageSizes(u32),
    /// A base address register of virtual functions is one of ports, or of no known kind, or a half of one.
    Range {
        /// Its index among the six.
        index: u8,
    },
    /// Two of them would have one requester identifier, or the first one has the function's own.
    OneIdentifier,
    /// The last one's requester identifier lies past the buses that lead to the function.
    PastBuses {
        /// The last bus that leads there.
        last: u8,
    },
    /// One would have the requester identifier of another function.
    Overlaps(Bdf),
    /// It has no SR-IOV capability, or no virtual function.
    Absent,
    /// It can have fewer than are to be enabled.
    Fewer {
        /// TotalVFs.
        total: u16,
    },
    /// They are not enabled as they were.
    NotEnabled,
    /// They are in devices that the port above does not reach.
    NoAri,
    /// No bridge is above it that states which addresses are free.
    NoBridge,
    /// Another function is behind the same bridge.
    NotAlone(Bdf),
    /// Their range does not fit behind its bridge.
    NoSpace {
        /// The index of its base address register among the six.
        index: u8,
    },
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vanished => f.write_str("it stopped to answer while its SR-IOV capability was read"),
            Self::Counts { initial, total } => write!(f, "it states {initial} at first and {total} in all"),
            Self::PageSizes(sizes) => write!(f, "it supports no pages of 4 KiB (page sizes {sizes:#x})"),
            Self::Range { index } => write!(f, "their base address register {index} is no memory"),
            Self::OneIdentifier => f.write_str("two of them would have one requester identifier"),
            Self::PastBuses { last } => {
                write!(f, "their requester identifiers go past bus {last:02x}, the last one that leads to it")
            }
            Self::Overlaps(place) => write!(f, "one of them would have the requester identifier of {place}"),
            Self::Absent => f.write_str("it has no virtual functions (SR-IOV)"),
            Self::Fewer { total } => write!(f, "it has {total} virtual functions"),
            Self::NotEnabled => f.write_str("they are not enabled any more"),
            Self::NoAri => f.write_str("the port above passes no requests to their devices (ARI forwarding)"),
            Self::NoBridge => f.write_str("no bridge is above it: no window states where their ranges can be"),
            Self::NotAlone(place) => {
                write!(f, "{place} is behind the same bridge: which addresses are free there is not known")
            }
            Self::NoSpace { index } => write!(f, "their range {index} does not fit into the window of its bridge"),
        }
    }
}

impl VirtualFunctions {
    /// Reads a function's capability, in up to 59 accesses; `None` if it has none, if it can have no virtual function,
    /// or if nothing shows its extended registers.
    pub fn read(config: &mut dyn ConfigSpace, place: Bdf) -> Option<Result<Self, Unusable>> {
        let at = extended::find(config, place, ID, BYTES)?;
        let [capabilities, counts, places, device, page_sizes] =
            [CAPABILITIES, COUNTS, PLACES, DEVICE, PAGE_SIZES].map(|word| config.read(place, at + word));
        let bars = BARS.map(|register| config.read(place, at + register));
        if config.read(place, 0) == u32::MAX {
            return Some(Err(Unusable::Vanished));
        }
        let (initial, total) = (counts as u16, (counts >> 16) as u16);
        if total == 0 {
            return None;
        }
        if initial > total || initial != total && capabilities & MIGRATES == 0 {
            return Some(Err(Unusable::Counts { initial, total }));
        }
        if page_sizes & PAGES_OF_4_KIB == 0 {
            return Some(Err(Unusable::PageSizes(page_sizes)));
        }
        if let Some(index) = bad_range(bars) {
            return Some(Err(Unusable::Range { index }));
        }
        let (offset, stride) = (places as u16, (places >> 16) as u16);
        Some(Ok(Self { total, device: (device >> 16) as u16, offset, stride }))
    }

    /// Returns the first and the last one of a function, if each has a requester identifier of its own among those that
    /// lead to the function.
    ///
    /// # Errors
    /// [`Unusable`] for the first reason against them.
    pub fn places(&self, function: Bdf, all: &[Function]) -> Result<RangeInclusive<Bdf>, Unusable> {
        if self.offset == 0 || self.total > 1 && self.stride == 0 {
            return Err(Unusable::OneIdentifier);
        }
        let last_bus = last_bus(function, all);
        let first = u32::from(function.requester()) + u32::from(self.offset);
        let last = first + u32::from(self.stride) * u32::from(self.total - 1);
        if last >> 8 > u32::from(last_bus) {
            return Err(Unusable::PastBuses { last: last_bus });
        }
        let is_one = |other: &&Function| {
            let requester = u32::from(other.place.requester());
            let is_on_the_way = self.total == 1 || (requester - first).is_multiple_of(u32::from(self.stride));
            other.place.segment == function.segment && is_on_the_way
        };
        let between = all.iter().filter(|other| (first..=last).contains(&u32::from(other.place.requester())));
        match between.into_iter().find(is_one) {
            Some(other) => Err(Unusable::Overlaps(other.place)),
            None => {
                let place = |requester: u32| Bdf::of_requester(function.segment, requester as u16);
                Ok(place(first)..=place(last))
            }
        }
    }
}

/// Returns the first base address register that is neither empty nor one of memory.
fn bad_range(bars: [u32; 6]) -> Option<u8> {
    let mut index = 0;
    while let Some(bar) = bars.get(index) {
        let is_wide = bar & KIND_OF_MEMORY == IS_64;
        if bar & IS_PORTS != 0 || bar & KIND_OF_MEMORY & !IS_64 != 0 || is_wide && index + 1 == bars.len() {
            return Some(index as u8);
        }
        index += if is_wide { 2 } else { 1 };
    }
    None
}

/// Returns the last bus that leads to a function: that of the bridge above it, or its own where there is none.
fn last_bus(function: Bdf, all: &[Function]) -> u8 {
    let above = all.iter().filter(|other| other.place.segment == function.segment);
    let behind = above.filter_map(|other| match other.kind {
        Kind::Bridge { secondary, subordinate } if secondary == function.bus => Some(subordinate),
        _ => None,
    });
    behind.min().map_or(function.bus, |last| last.max(function.bus))
}

#[cfg(test)]
#[path = "sriov_tests.rs"]
mod tests;
