// SPDX-License-Identifier: MIT OR Apache-2.0
//! The function that a guest is shown of a physical one, as plain data: the next image builds the same function from it
//! without an access to the hardware.

use arrayvec::ArrayVec;

use super::problem::Reason;
use super::virtio::{self, Registers, Structures};
use crate::devices::pci::bar::{BARS, Bar, Space};
use crate::devices::pci::msix::MsixPlace;

/// Ranges are mapped by whole pages.
pub(super) const PAGE: u64 = 4096;
/// Most pieces of a range: MSI-X table and pending bits cut it into three.
const MOST_PIECES: usize = 3;

/// The registers by which drivers recognise a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Vendor identifier.
    pub vendor: u16,
    /// Device identifier.
    pub device: u16,
    /// Base class, subclass, programming interface and revision, from the high byte down.
    pub class: u32,
    /// The subsystem's vendor identifier.
    pub subsystem_vendor: u16,
    /// The subsystem's identifier.
    pub subsystem: u16,
}

/// A range that the function decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its base address register.
    pub bar: Bar,
    /// Where the host has placed it.
    pub address: u64,
}

/// A function as a guest is shown it. Everything else of it is hidden: its ROM, other capabilities, all of extended
/// configuration space but SR-IOV where it is approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Its identifiers and class.
    pub identity: Identity,
    /// The ranges that it decodes, by base address register.
    pub ranges: [Option<Range>; BARS],
    /// MSI vectors, as a power of two.
    pub msi: Option<u8>,
    /// MSI-X.
    pub msix: Option<MsixPlace>,
    /// It has power management.
    pub has_power: bool,
    /// It is a PCI Express function.
    pub has_express: bool,
    /// The guest may reset it by Device Control.
    pub has_reset: bool,
    /// How many virtual functions of it the host has approved; 0: it shows no SR-IOV capability.
    pub virtual_functions: u8,
    /// Where the registers of a virtio function are.
    pub virtio: Structures,
    /// The pin of the guest's I/O APIC for its INTx line.
    pub line: Option<u8>,
}

impl Description {
    pub(super) fn is_virtio(&self) -> bool {
        virtio::is_virtio(self.identity.vendor, self.identity.device)
    }

    /// Returns whether virtio's registers, if there are any, are a virtio function's and inside of ranges.
    pub(super) fn has_registers_inside(&self) -> bool {
        let is_inside = |registers: &Registers| {
            let end = u64::from(registers.offset) + u64::from(registers.bytes);
            registers.bytes > 0 && self.range(registers.bar).is_some_and(|range| end <= range.bar.bytes())
        };
        let mut there = self.virtio.places.iter().flatten();
        self.virtio.is_possible() && there.all(|registers| self.is_virtio() && is_inside(registers))
    }

    /// The range of a base address register.
    pub(super) fn range(&self, bar: u8) -> Option<Range> {
        *self.ranges.get(usize::from(bar))?
    }

    /// Returns whether MSI-X, if it is there, has table and pending bits inside of ranges of memory, apart.
    pub(super) fn check_msix(&self) -> Result<(), Reason> {
        let Some(place) = self.msix else { return Ok(()) };
        let is_inside = |bar, offset: u32, bytes| {
            let memory = self.range(bar).filter(|range| range.bar.space() == Space::Memory);
            memory.is_some_and(|range| u64::from(offset) + bytes <= range.bar.bytes())
        };
        if place.body().is_none() || !is_inside(place.bar, place.table, place.table_bytes()) {
            return Err(Reason::TableOutside);
        }
        if !is_inside(place.pending_bar, place.pending, place.pending_bytes()) {
            return Err(Reason::PendingOutside);
        }
        let (table, pending) = (u64::from(place.table), u64::from(place.pending));
        let is_apart = place.bar != place.pending_bar
            || table + place.table_bytes() <= pending
            || pending + place.pending_bytes() <= table;
        if is_apart { Ok(()) } else { Err(Reason::PendingInTable) }
    }

    /// The emulated parts of a range: from and to which offset the MSI-X table reaches, and the pending bits.
    fn emulated(&self, bar: u8) -> impl Iterator<Item = (u64, u64)> + use<> {
        let place = self.msix;
        let table = place.filter(|place| place.bar == bar);
        let pending = place.filter(|place| place.pending_bar == bar);
        let table = table.map(|place| (u64::from(place.table), u64::from(place.table) + place.table_bytes()));
        let pending = pending.map(|place| (u64::from(place.pending), u64::from(place.pending) + place.pending_bytes()));
        table.into_iter().chain(pending)
    }

    /// Returns whether an access may be forwarded: it is aligned, inside of the range, and apart from emulated parts.
    pub(super) fn may_be_forwarded(&self, bar: u8, offset: u64, bytes: u64) -> bool {
        let Some(range) = self.range(bar) else { return false };
        let end = offset.saturating_add(bytes);
        let is_apart = |(from, to): (u64, u64)| end <= from || to <= offset;
        offset.is_multiple_of(bytes) && end <= range.bar.bytes() && self.emulated(bar).all(is_apart)
    }

    /// The pieces of a range that may be mapped: from and to which offset. Pages with an emulated part are left out.
    pub(super) fn pieces(&self, bar: u8) -> ArrayVec<(u64, u64), MOST_PIECES> {
        let mut pieces = ArrayVec::new();
        let range = self.range(bar).filter(|range| range.bar.space() == Space::Memory && range.bar.bytes() >= PAGE);
        let Some(range) = range else { return pieces };
        let mut holes: ArrayVec<_, 2> =
            self.emulated(bar).map(|(from, to)| (from / PAGE * PAGE, to.next_multiple_of(PAGE))).collect();
        if let [first, second] = &mut holes[..]
            && *second < *first
        {
            core::mem::swap(first, second);
        }
        let mut from = 0;
        for (start, end) in holes.into_iter().chain([(range.bar.bytes(), range.bar.bytes())]) {
            if from < start {
                pieces.push((from, start));
            }
            from = from.max(end);
        }
        pieces
    }
}
