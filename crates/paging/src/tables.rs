// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of tables and its operations.

use core::marker::PhantomData;

use units::{PAGE_BYTES, PHYSICAL_LIMIT, PageSize, PhysAddr};

use crate::change::Change;
use crate::error::MapError;
use crate::format::{Entry, Flags, Format};
use crate::mapping::Mapping;
use crate::memory::TableMemory;
use crate::walk::{self, LOW_BITS, ROOT_LEVEL, Span};

/// A tree of page tables. The frames belong to it until [`Tables::free_all`]; dropping it leaks them, as a host with
/// tables that live as long as itself does.
#[derive(Debug)]
pub struct Tables<F> {
    root: PhysAddr,
    pub(crate) largest: PageSize,
    format: PhantomData<F>,
}

impl<F: Format> Tables<F> {
    /// Empty tables that will use pages up to `largest`: 1 GiB only where CPUID has it.
    ///
    /// # Errors
    /// [`MapError::OutOfTables`] if there is no frame for the root.
    pub fn new(memory: &mut impl TableMemory, largest: PageSize) -> Result<Self, MapError> {
        let root = memory.allocate().ok_or(MapError::OutOfTables)?;
        Ok(Self { root, largest, format: PhantomData })
    }

    /// Takes over tables built earlier in the same format, with their root at `root` (from [`Tables::root`]).
    pub fn adopt(root: PhysAddr, largest: PageSize) -> Self {
        Self { root, largest, format: PhantomData }
    }

    /// The root: CR3, or the nested CR3.
    pub fn root(&self) -> PhysAddr {
        self.root
    }

    /// Maps `bytes` bytes at `address` to `phys` with the largest pages that fit. All three are multiples of 4 KiB; no
    /// bytes is no work.
    ///
    /// # Errors
    /// Refused whole if any of it is mapped, misaligned or out of range, or if tables run out.
    pub fn map(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        phys: PhysAddr,
        bytes: u64,
        flags: Flags,
    ) -> Result<(), MapError> {
        let span = self.span(address, bytes)?;
        check_physical(phys, bytes)?;
        if let Some(taken) = walk::first::<F>(memory, self.root, span, |entry| entry != Entry::Absent) {
            return Err(MapError::AlreadyMapped { address: F::extend(taken) });
        }
        let mut change = Change::<F, _>::new(memory, self.root, self.largest);
        change.map(span, phys, flags).inspect_err(|_| change.unmap(span))
    }

    /// Unmaps `bytes` bytes at `address`, splitting a larger page of which only a part is meant.
    ///
    /// # Errors
    /// Refused whole if any of it is not mapped, misaligned or out of range, or if a split finds no table.
    pub fn unmap(&mut self, memory: &mut impl TableMemory, address: u64, bytes: u64) -> Result<(), MapError> {
        let span = self.mapped_span(memory, address, bytes)?;
        let mut change = Change::<F, _>::new(memory, self.root, self.largest);
        change.split(span)?;
        change.unmap(span);
        Ok(())
    }

    /// Gives `bytes` bytes at `address` the rights `flags` instead of those they have, splitting as `unmap` does.
    ///
    /// # Errors
    /// As for [`Tables::unmap`].
    pub fn protect(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        bytes: u64,
        flags: Flags,
    ) -> Result<(), MapError> {
        let span = self.mapped_span(memory, address, bytes)?;
        let mut change = Change::<F, _>::new(memory, self.root, self.largest);
        change.split(span)?;
        change.protect(span, flags);
        Ok(())
    }

    /// Returns the mapping that translates `address`; `None` if it is not mapped.
    pub fn translate(&self, memory: &impl TableMemory, address: u64) -> Option<Mapping> {
        if F::extend(address & LOW_BITS) != address {
            return None;
        }
        let mut found = None;
        let span = Span { start: address & LOW_BITS, end: (address & LOW_BITS) + 1 };
        walk::pages::<F>(memory, self.root, span, &mut |mapping| found = Some(mapping));
        let page: Mapping = found?;
        let offset = address - page.address;
        Some(Mapping { address, phys: PhysAddr(page.phys.0 + offset), ..page })
    }

    /// Shows every page, by rising address (low half first): for audits, such as "nothing is writable and executable".
    pub fn visit(&self, memory: &impl TableMemory, mut visitor: impl FnMut(Mapping)) {
        walk::pages::<F>(memory, self.root, Span::ALL, &mut visitor);
    }

    /// Frees every table, the root included. Nothing may use these tables any longer.
    pub fn free_all(self, memory: &mut impl TableMemory) {
        Change::<F, _>::new(memory, self.root, self.largest).free_tables(self.root, ROOT_LEVEL);
    }

    fn mapped_span(&self, memory: &impl TableMemory, address: u64, bytes: u64) -> Result<Span, MapError> {
        let span = self.span(address, bytes)?;
        match walk::first::<F>(memory, self.root, span, |entry| entry == Entry::Absent) {
            Some(hole) => Err(MapError::NotMapped { address: F::extend(hole) }),
            None => Ok(span),
        }
    }

    /// Checks a range and strips it to the 48 bits that are translated.
    fn span(&self, address: u64, bytes: u64) -> Result<Span, MapError> {
        check_aligned(address)?;
        check_aligned(bytes)?;
        let start = address & LOW_BITS;
        let refused = MapError::NotCanonical { address, bytes };
        let end = start.checked_add(bytes).filter(|end| *end <= LOW_BITS + 1).ok_or(refused)?;
        let last = F::extend(end.saturating_sub(1).max(start));
        match F::extend(start) == address && last.wrapping_sub(address) == bytes.saturating_sub(1) {
            true => Ok(Span { start, end }),
            false => Err(refused),
        }
    }
}

fn check_aligned(value: u64) -> Result<(), MapError> {
    if value.is_multiple_of(PAGE_BYTES) { Ok(()) } else { Err(MapError::Misaligned { value }) }
}

fn check_physical(phys: PhysAddr, bytes: u64) -> Result<(), MapError> {
    check_aligned(phys.0)?;
    match phys.checked_add(bytes) {
        Some(end) if end.0 <= PHYSICAL_LIMIT => Ok(()),
        _ => Err(MapError::BeyondPhysical { phys, bytes }),
    }
}
