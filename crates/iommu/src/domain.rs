// SPDX-License-Identifier: MIT OR Apache-2.0
//! A domain: the memory that one or several functions reach.

use core::fmt;

use paging::{Flags, Format, MapError, TableMemory, Tables};
use units::{PageSize, PhysAddr};

/// A domain's number, which tags translations in a unit's caches. 0 is the domain of functions that reach nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainId(pub u16);

impl fmt::Display for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "domain {}", self.0)
    }
}

/// The addresses of four levels.
const FOUR_LEVELS: u64 = 1 << 48;

/// Four levels of tables in a vendor's format: 48 bits of a device's addresses.
#[derive(Debug)]
pub struct Domain<F> {
    id: DomainId,
    tables: Tables<F>,
    largest: PageSize,
    limit: u64,
}

impl<F: Format> Domain<F> {
    /// Creates a domain that maps nothing, and will use pages up to `largest`.
    ///
    /// # Errors
    /// [`MapError::OutOfTables`] if there is no frame for the root.
    pub fn new(id: DomainId, memory: &mut impl TableMemory, largest: PageSize) -> Result<Self, MapError> {
        Ok(Self { id, tables: Tables::new(memory, largest)?, largest, limit: FOUR_LEVELS })
    }

    /// Adopts a domain with tables that were built earlier, by an image before this one.
    pub fn adopt(id: DomainId, root: PhysAddr, largest: PageSize) -> Self {
        Self { id, tables: Tables::adopt(root, largest), largest, limit: FOUR_LEVELS }
    }

    /// Returns the same domain, which refuses to map addresses from `limit` up: for units that translate fewer.
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit: limit.min(FOUR_LEVELS), ..self }
    }

    /// Returns the first address that cannot be mapped.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the largest page that it uses.
    pub const fn largest(&self) -> PageSize {
        self.largest
    }

    /// Returns its number.
    pub const fn id(&self) -> DomainId {
        self.id
    }

    /// Returns the physical address of its top table.
    pub fn root(&self) -> PhysAddr {
        self.tables.root()
    }

    /// Lets devices read, and with `is_writable` write, `bytes` bytes of memory at `phys` by their `address`.
    ///
    /// # Errors
    /// Those of [`Tables::map`]: refused whole.
    pub fn map(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        phys: PhysAddr,
        bytes: u64,
        is_writable: bool,
    ) -> Result<(), MapError> {
        if address.checked_add(bytes).is_none_or(|end| end > self.limit) {
            return Err(MapError::NotCanonical { address, bytes });
        }
        let flags = if is_writable { Flags::WRITABLE } else { Flags::empty() };
        self.tables.map(memory, address, phys, bytes, flags)
    }

    /// Devices no longer reach these addresses once the units' caches have been invalidated.
    ///
    /// # Errors
    /// Those of [`Tables::unmap`]: refused whole.
    pub fn unmap(&mut self, memory: &mut impl TableMemory, address: u64, bytes: u64) -> Result<(), MapError> {
        self.tables.unmap(memory, address, bytes)
    }

    /// Frees the tables. No function may be attached any more, and no unit's cache may hold their entries.
    pub fn free(self, memory: &mut impl TableMemory) {
        self.tables.free_all(memory);
    }
}
