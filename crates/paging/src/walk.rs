// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the tables: one recursion over the four levels, always bounded by the depth of the tree.

use units::{PageSize, PhysAddr};

use crate::format::{Entry, Format};
use crate::mapping::Mapping;
use crate::memory::TableMemory;

/// The level of the root's entries.
pub(crate) const ROOT_LEVEL: u8 = 4;
/// The bits of an address that four levels translate.
pub(crate) const LOW_BITS: u64 = (1 << 48) - 1;

/// Addresses `[start, end)`, of which only the low 48 bits are kept, so that `end` never overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) const ALL: Self = Self { start: 0, end: LOW_BITS + 1 };

    /// The parts of this span that lie in one entry of `level` each, with the entry's index.
    pub(crate) fn slots(self, level: u8) -> impl Iterator<Item = (usize, Span)> {
        let bytes = entry_bytes(level);
        let mut start = self.start;
        core::iter::from_fn(move || {
            (start < self.end).then(|| {
                let slot = Span { start, end: self.end.min((start & !(bytes - 1)) + bytes) };
                start = slot.end;
                (index(slot.start, level), slot)
            })
        })
    }

    pub(crate) fn bytes(self) -> u64 {
        self.end - self.start
    }
}

/// Returns how many bytes one entry of `level` spans.
pub(crate) fn entry_bytes(level: u8) -> u64 {
    1 << (12 + 9 * (u32::from(level) - 1))
}

/// The index, in a table of `level`, of the entry for `address`.
pub(crate) fn index(address: u64, level: u8) -> usize {
    (address / entry_bytes(level) % 512) as usize
}

/// The page size that an entry of `level` maps; no format maps pages at the root.
pub(crate) fn page_size(level: u8) -> PageSize {
    match level {
        1 => PageSize::Kib4,
        2 => PageSize::Mib2,
        _ => PageSize::Gib1,
    }
}

/// Returns the first address of `span` that has a final entry (a page or an absence) that satisfies `wanted`.
pub(crate) fn first<F: Format>(
    memory: &impl TableMemory,
    root: PhysAddr,
    span: Span,
    wanted: fn(Entry) -> bool,
) -> Option<u64> {
    first_in::<F>(memory, root, ROOT_LEVEL, span, wanted)
}

fn first_in<F: Format>(
    memory: &impl TableMemory,
    table: PhysAddr,
    level: u8,
    span: Span,
    wanted: fn(Entry) -> bool,
) -> Option<u64> {
    span.slots(level).find_map(|(index, slot)| match F::decode(memory.read(table, index), level) {
        Entry::Table(next) if level > 1 => first_in::<F>(memory, next, level - 1, slot, wanted),
        entry => wanted(entry).then_some(slot.start),
    })
}

/// Shows every page that `span` touches; [`Mapping::address`] is the page's first address.
pub(crate) fn pages<F: Format>(
    memory: &impl TableMemory,
    root: PhysAddr,
    span: Span,
    visitor: &mut impl FnMut(Mapping),
) {
    pages_in::<F>(memory, root, ROOT_LEVEL, span, visitor);
}

fn pages_in<F: Format>(
    memory: &impl TableMemory,
    table: PhysAddr,
    level: u8,
    span: Span,
    visitor: &mut impl FnMut(Mapping),
) {
    for (index, slot) in span.slots(level) {
        match F::decode(memory.read(table, index), level) {
            Entry::Table(next) if level > 1 => pages_in::<F>(memory, next, level - 1, slot, visitor),
            Entry::Page(phys, flags) => {
                let address = F::extend(slot.start & !(entry_bytes(level) - 1));
                visitor(Mapping { address, phys, flags, size: page_size(level) });
            }
            Entry::Table(_) | Entry::Absent => {}
        }
    }
}
