// SPDX-License-Identifier: MIT OR Apache-2.0
//! Domains of guests, by the unit behind which their functions are.
//!
//! A frame of a domain's tables is given back only after the unit has invalidated what it may have cached of it.

use alloc::vec::Vec;

use paging::{Format, MapError, TableMemory};
use pci::Bdf;
use units::{PAGE_BYTES, PageSize, PhysAddr};

use super::place::FIRMWARE;
use super::vendor::Unit;
use crate::amd::AmdFormat;
use crate::intel::{SecondStage, WrittenBack};
use crate::store::Words;
use crate::{Domain, DomainId, Problem, Registers, Store};

/// The pages of AMD-Vi's domains: an entry of level 3 maps 1 GiB on every unit (48882, section 2.2.3).
const LARGEST_AMD: PageSize = PageSize::Gib1;
const OTHER_FORMAT: Problem =
    Problem::Lacks { feature: "tables in the format of this domain, which is of another unit" };

/// The memory that a guest's functions behind one unit reach.
#[derive(Debug)]
pub enum GuestDomain {
    /// In AMD-Vi's format.
    Amd(Domain<AmdFormat>),
    /// In VT-d's format.
    Intel(Domain<SecondStage>),
}

impl GuestDomain {
    /// Returns its number, which is the guest's own behind this unit.
    pub fn id(&self) -> DomainId {
        match self {
            Self::Amd(domain) => domain.id(),
            Self::Intel(domain) => domain.id(),
        }
    }
}

impl<R: Registers> Unit<R> {
    /// Creates a domain that maps nothing, in the format, address limit and page sizes of this unit. The number is no
    /// other domain's behind it, nor 0 or [`FIRMWARE`].
    ///
    /// # Errors
    /// [`Problem::OutOfMemory`]; [`Problem::Lacks`] if the unit cannot tag a domain with this number.
    pub fn create_domain<W: Words>(&self, memory: &mut Store<W>, id: DomainId) -> Result<GuestDomain, Problem> {
        if id <= FIRMWARE {
            return Err(Problem::Lacks { feature: "a domain identifier that is not the host's own (2 or higher)" });
        }
        match self {
            Self::Amd(..) => Ok(GuestDomain::Amd(Domain::new(id, memory, LARGEST_AMD)?)),
            Self::Intel(unit) => Ok(GuestDomain::Intel(unit.create_domain(memory, id)?)),
        }
    }

    /// Lets the domain's functions read, and with `is_writable` write, `bytes` bytes of memory at `phys` by their
    /// `address`, all multiples of 4 KiB. The unit sees it when this returns.
    ///
    /// # Errors
    /// [`Problem::Map`] and [`Problem::OutOfMemory`]: nothing of it is mapped. [`Problem::NoAnswer`] and
    /// [`Problem::Refused`]: the functions may or may not reach it.
    pub fn map<W: Words>(
        &mut self,
        memory: &mut Store<W>,
        domain: &mut GuestDomain,
        address: u64,
        phys: PhysAddr,
        bytes: u64,
        is_writable: bool,
    ) -> Result<(), Problem> {
        let part = Part { address, phys, bytes, is_writable };
        let id = domain.id();
        let (mapped, freed) = match (&*self, domain) {
            (Self::Amd(..), GuestDomain::Amd(domain)) => part.map(memory, domain),
            (Self::Intel(unit), GuestDomain::Intel(domain)) if unit.is_coherent() => part.map(memory, domain),
            (Self::Intel(_), GuestDomain::Intel(domain)) => part.map(&mut WrittenBack(memory), domain),
            _ => return Err(OTHER_FORMAT),
        };
        match mapped {
            Ok(()) => self.show_mapped(memory, id, address, bytes),
            Err(error) if freed.is_empty() => Err(error.into()),
            Err(error) => {
                self.invalidate(memory, id)?;
                freed.into_iter().for_each(|table| memory.free(table));
                Err(error.into())
            }
        }
    }

    /// Lets a function reach what `domain` maps, and nothing else. Its interrupts stay as they are.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::Lacks`] for a domain of another unit; [`Problem::OutOfMemory`];
    /// [`Problem::NoAnswer`] and [`Problem::Refused`], after which it may still reach what it reached before.
    pub fn attach<W: Words>(
        &mut self,
        memory: &mut Store<W>,
        source: Bdf,
        domain: &GuestDomain,
    ) -> Result<(), Problem> {
        match (self, domain) {
            (Self::Amd(registers, unit), GuestDomain::Amd(domain)) => unit.attach(registers, memory, source, domain),
            (Self::Intel(unit), GuestDomain::Intel(domain)) => unit.attach(memory, source, domain),
            _ => Err(OTHER_FORMAT),
        }
    }

    /// Lets a function reach nothing, and send no interrupt where the unit remaps them.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoAnswer`] and [`Problem::Refused`], after which the memory that it reached
    /// must not be given to another owner.
    pub fn block<W: Words>(&mut self, memory: &mut Store<W>, source: Bdf) -> Result<(), Problem> {
        match self {
            Self::Amd(registers, unit) => unit.block(registers, memory, source),
            Self::Intel(unit) => {
                let blocked = unit.block(memory, source);
                let closed = if unit.remaps_interrupts() { unit.close_interrupts(memory, source) } else { Ok(()) };
                blocked.and(closed)
            }
        }
    }

    /// Lets a function reach nothing and send no interrupt, and has the unit log as little as it can of what it refuses
    /// the function, until that is attached to a domain. The unit's tables state it: the next image finds it.
    ///
    /// # Errors
    /// Those of [`block`](Self::block); [`Problem::OutOfMemory`], after which it is blocked and its faults are logged.
    pub fn stop<W: Words>(&mut self, memory: &mut Store<W>, source: Bdf) -> Result<(), Problem> {
        match self {
            Self::Amd(registers, unit) => unit.stop(registers, memory, source),
            Self::Intel(unit) => {
                let stopped = unit.stop(memory, source);
                let closed = if unit.remaps_interrupts() { unit.close_interrupts(memory, source) } else { Ok(()) };
                stopped.and(closed)
            }
        }
    }

    /// Returns whether a function was stopped, by this image or one before, and was not attached since.
    ///
    /// # Errors
    /// [`Problem::NotHere`].
    pub fn is_stopped<W: Words>(&self, memory: &Store<W>, source: Bdf) -> Result<bool, Problem> {
        match self {
            Self::Amd(_, unit) => unit.is_stopped(memory, source),
            Self::Intel(unit) => unit.is_stopped(memory, source),
        }
    }

    /// Returns the domain to which a function is attached, as the unit's tables state; `None` if it is blocked. An
    /// image that has adopted the unit knows its domains only from here. Functions that share a domain share its
    /// number: of the domains returned for them, one is kept.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NotAdopted`] if the domain's tables are not where an image has them.
    pub fn attached<W: Words>(&self, memory: &Store<W>, source: Bdf) -> Result<Option<GuestDomain>, Problem> {
        let found = match self {
            Self::Amd(_, unit) => {
                let domain = unit.attached(memory, source)?;
                domain.map(|(id, root)| (root, GuestDomain::Amd(Domain::adopt(id, root, LARGEST_AMD))))
            }
            Self::Intel(unit) => {
                unit.adopt_domain(memory, source)?.map(|domain| (domain.root(), GuestDomain::Intel(domain)))
            }
        };
        match found {
            Some((root, _)) if !memory.holds(root, PAGE_BYTES) => {
                Err(Problem::NotAdopted { reason: "the tables of a domain are not in the tables' memory" })
            }
            found => Ok(found.map(|(_, domain)| domain)),
        }
    }

    /// Frees a domain to which no function is attached any more: invalidates what is cached under its number, then
    /// gives its tables back.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`] and [`Problem::Refused`]: the tables are never given back; [`Problem::Lacks`] for a domain
    /// of another unit.
    pub fn free_domain<W: Words>(&mut self, memory: &mut Store<W>, domain: GuestDomain) -> Result<(), Problem> {
        if !matches!((&*self, &domain), (Self::Amd(..), GuestDomain::Amd(_)) | (Self::Intel(_), GuestDomain::Intel(_)))
        {
            return Err(OTHER_FORMAT);
        }
        self.invalidate(memory, domain.id())?;
        match domain {
            GuestDomain::Amd(domain) => domain.free(memory),
            GuestDomain::Intel(domain) => domain.free(memory),
        }
        Ok(())
    }

    fn invalidate<W: Words>(&mut self, memory: &mut Store<W>, id: DomainId) -> Result<(), Problem> {
        match self {
            Self::Amd(registers, unit) => unit.invalidate(registers, memory, id),
            Self::Intel(unit) => unit.invalidate(memory, id),
        }
    }

    /// Units may have cached that nothing was mapped there.
    fn show_mapped<W: Words>(
        &mut self,
        memory: &mut Store<W>,
        id: DomainId,
        address: u64,
        bytes: u64,
    ) -> Result<(), Problem> {
        match self {
            Self::Amd(registers, unit) => unit.invalidate_range(registers, memory, id, address, bytes),
            Self::Intel(unit) => unit.mapped(memory, id),
        }
    }
}

/// A part of memory to be mapped.
#[derive(Clone, Copy)]
struct Part {
    address: u64,
    phys: PhysAddr,
    bytes: u64,
    is_writable: bool,
}

impl Part {
    /// Maps it; returns the tables that a refused request has freed, too. The unit may have cached them meanwhile.
    fn map<F: Format, M: TableMemory>(
        self,
        memory: &mut M,
        domain: &mut Domain<F>,
    ) -> (Result<(), MapError>, Vec<PhysAddr>) {
        let mut memory = Deferred { memory, freed: Vec::new() };
        let mapped = domain.map(&mut memory, self.address, self.phys, self.bytes, self.is_writable);
        (mapped, memory.freed)
    }
}

/// Table memory that collects what is freed instead of giving it back.
struct Deferred<'a, M> {
    memory: &'a mut M,
    freed: Vec<PhysAddr>,
}

impl<M: TableMemory> TableMemory for Deferred<'_, M> {
    fn allocate(&mut self) -> Option<PhysAddr> {
        self.memory.allocate()
    }

    fn free(&mut self, table: PhysAddr) {
        self.freed.push(table);
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.memory.read(table, index)
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.memory.write(table, index, entry);
    }
}
