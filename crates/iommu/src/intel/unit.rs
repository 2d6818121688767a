// SPDX-License-Identifier: MIT OR Apache-2.0
//! One unit, once it translates: functions are attached and blocked, caches invalidated, faults read.

use pci::Bdf;
use units::{PAGE_BYTES, PageSize};

use crate::domain::{Domain, DomainId};
use crate::fault::Fault;
use crate::hardware::{Memory, Registers};
use crate::intel::capabilities::Capabilities;
use crate::intel::coherence::{Stores, WrittenBack};
use crate::intel::faults;
use crate::intel::format::SecondStage;
use crate::intel::interrupts::Remapping;
use crate::intel::queue::{self, Command, Drain, Queue};
use crate::intel::registers::{INTERRUPT_REMAPPING, TRANSLATION, WRITE_BUFFER_FLUSH, once, set};
use crate::intel::tables::{Context, Contexts, third_level};
use crate::problem::Problem;

/// A unit that translates: what is not attached reaches nothing.
#[derive(Debug)]
pub struct Unit<R> {
    pub(super) registers: R,
    pub(super) capabilities: Capabilities,
    pub(super) segment: u16,
    pub(super) contexts: Contexts,
    pub(super) queue: Queue,
    pub(super) remapping: Option<Remapping>,
}

impl<R: Registers> Unit<R> {
    /// Returns the first device address that cannot be translated: the limit of domains that are attached.
    pub fn address_limit(&self) -> u64 {
        self.capabilities.address_limit()
    }

    /// Returns the largest page that attached domains may use.
    pub fn largest_page(&self) -> PageSize {
        self.capabilities.largest_page()
    }

    /// Returns whether the unit snoops the CPUs' caches. If not, domains are changed through [`WrittenBack`].
    pub fn is_coherent(&self) -> bool {
        self.capabilities.is_coherent()
    }

    /// Lets a function reach what `domain` maps, and nothing else. One that is attached elsewhere is blocked first.
    ///
    /// # Errors
    /// The function stays, or becomes, blocked: [`Problem::NotHere`], [`Problem::Lacks`] for a domain that the unit
    /// cannot translate, [`Problem::OutOfMemory`], [`Problem::NoAnswer`], [`Problem::Refused`].
    pub fn attach(
        &mut self,
        memory: &mut impl Memory,
        source: Bdf,
        domain: &Domain<SecondStage>,
    ) -> Result<(), Problem> {
        self.check(source)?;
        let context = context_of(memory, self.capabilities, domain)?;
        if self.contexts.get(memory, source.requester()) == context {
            return Ok(());
        }
        self.block(memory, source)?;
        self.contexts.set(memory, source.requester(), context)?;
        let made_present = self.drop_absent(memory, source.requester(), domain.id());
        if made_present.is_err() {
            self.contexts.clear(memory, source.requester());
        }
        made_present
    }

    /// Lets a function reach nothing any more. Its accesses are recorded as faults.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; with [`Problem::NoAnswer`] and [`Problem::Refused`] the unit may still hold what it had
    /// cached: the memory that the function reached must not be given to another owner.
    pub fn block(&mut self, memory: &mut impl Memory, source: Bdf) -> Result<(), Problem> {
        self.check(source)?;
        let context = self.contexts.get(memory, source.requester());
        if !context.is_present() {
            return Ok(());
        }
        self.contexts.clear(memory, source.requester());
        self.command(memory, Command::Context { requester: source.requester(), domain: context.domain() })?;
        self.invalidate(memory, context.domain())
    }

    /// Blocks a function, and has the unit record no more faults of its accesses until it is attached. Those of
    /// interrupts are recorded on: their entries are shared by all functions.
    ///
    /// # Errors
    /// Those of [`block`](Self::block), and [`Problem::OutOfMemory`].
    pub fn stop(&mut self, memory: &mut impl Memory, source: Bdf) -> Result<(), Problem> {
        self.block(memory, source)?;
        self.contexts.stop(memory, source.requester())?;
        match self.capabilities.caches_absent() {
            true => self.command(memory, Command::Context { requester: source.requester(), domain: DomainId(0) }),
            false => self.flush_stores(),
        }
    }

    /// Returns whether a function was stopped, by this image or one before.
    ///
    /// # Errors
    /// [`Problem::NotHere`].
    pub fn is_stopped(&self, memory: &impl Memory, source: Bdf) -> Result<bool, Problem> {
        self.check(source)?;
        Ok(self.contexts.get(memory, source.requester()).is_stopped())
    }

    /// Returns the domain to which a function is attached.
    pub fn domain_of(&self, memory: &impl Memory, source: Bdf) -> Option<DomainId> {
        let context = self.contexts.get(memory, source.requester());
        (source.segment == self.segment && context.is_present()).then(|| context.domain())
    }

    /// Drops the cached entries of a domain: after an unmap, before the memory is given to another owner.
    /// Accesses under way have ended by then, where the unit can drain them.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`] or [`Problem::Refused`].
    pub fn invalidate(&mut self, memory: &mut impl Memory, domain: DomainId) -> Result<(), Problem> {
        let drain = self.drain();
        self.command(memory, Command::Domain(domain, drain))
    }

    /// Drops the cached entries of `bytes` bytes at `address`, as [`invalidate`](Self::invalidate) does for a domain;
    /// more than those where the unit cannot select pages.
    ///
    /// # Errors
    /// Those of [`invalidate`](Self::invalidate).
    pub fn invalidate_range(
        &mut self,
        memory: &mut impl Memory,
        domain: DomainId,
        address: u64,
        bytes: u64,
    ) -> Result<(), Problem> {
        let drain = self.drain();
        let mask = mask_of(address, bytes).filter(|mask| Some(*mask) <= self.capabilities.largest_mask());
        let command = match mask {
            Some(mask) => {
                let address = address & !((PAGE_BYTES << mask) - 1);
                Command::Pages { domain, address, mask, drain }
            }
            None => Command::Domain(domain, drain),
        };
        self.command(memory, command)
    }

    /// Lets the unit see what was mapped in a domain: units that cache absent entries or buffer stores need this after
    /// each change that only maps. Does nothing on others.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`] or [`Problem::Refused`].
    pub fn mapped(&mut self, memory: &mut impl Memory, domain: DomainId) -> Result<(), Problem> {
        match self.capabilities.caches_absent() {
            true => self.invalidate(memory, domain),
            false => self.flush_stores(),
        }
    }

    /// Takes the next access that was refused; `None` if there is none. Ends after each of the unit's records was
    /// read once.
    pub fn next_fault(&mut self) -> Option<Fault> {
        faults::next(&mut self.registers, self.capabilities, self.segment)
    }

    /// Disables translation, interrupt remapping and the queue, and gives their memory back: from here on every
    /// function reaches all memory.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`], [`Problem::Absurd`]; nothing is given back then, as the unit may use it.
    pub fn leave(mut self, memory: &mut impl Memory) -> Result<(), Problem> {
        set(&mut self.registers, TRANSLATION, false, "disabling translation")?;
        set(&mut self.registers, INTERRUPT_REMAPPING, false, "disabling interrupt remapping")?;
        queue::stop(&mut self.registers)?;
        self.contexts.free(memory);
        self.queue.free(memory);
        if let Some(remapping) = self.remapping {
            remapping.free(memory);
        }
        Ok(())
    }

    /// Carries out one command; what was stored before it is seen by the unit.
    pub(super) fn command(&mut self, memory: &mut impl Memory, command: Command) -> Result<(), Problem> {
        self.flush_stores()?;
        self.queue.carry_out(&mut self.registers, memory, command)
    }

    pub(super) fn drain(&self) -> Drain {
        let (writes, reads) = self.capabilities.drains();
        Drain { writes, reads }
    }

    /// Flushes the chipset's write buffers, in which stores may wait (section 6.8).
    pub(super) fn flush_stores(&mut self) -> Result<(), Problem> {
        match self.capabilities.needs_write_buffer_flush() {
            true => once(&mut self.registers, WRITE_BUFFER_FLUSH, "flushing write buffers"),
            false => Ok(()),
        }
    }

    pub(super) fn check(&self, source: Bdf) -> Result<(), Problem> {
        if source.segment == self.segment { Ok(()) } else { Err(Problem::NotHere { source }) }
    }

    /// Drops the cached absence of an entry that has become present, and all that was cached under the domain's number
    /// before it was this domain's.
    fn drop_absent(&mut self, memory: &mut impl Memory, requester: u16, domain: DomainId) -> Result<(), Problem> {
        if self.capabilities.caches_absent() {
            self.command(memory, Command::Context { requester, domain: DomainId(0) })?;
        }
        self.invalidate(memory, domain)
    }

    pub(super) fn stores(&self) -> Stores {
        Stores { is_coherent: self.capabilities.is_coherent() }
    }
}

/// Returns the context entry of functions in `domain`, which the unit can translate.
pub(super) fn context_of<M: Memory>(
    memory: &mut M,
    capabilities: Capabilities,
    domain: &Domain<SecondStage>,
) -> Result<Context, Problem> {
    if !capabilities.has_domain(domain.id()) {
        return Err(Problem::Lacks { feature: "a domain identifier of this number (CAP.ND)" });
    }
    if domain.limit() > capabilities.address_limit() {
        return Err(Problem::Lacks { feature: "device addresses as wide as the domain's (CAP.SAGAW, CAP.MGAW)" });
    }
    if domain.largest() > capabilities.largest_page() {
        return Err(Problem::Lacks { feature: "pages as large as the domain's (CAP.SSLPS)" });
    }
    let top = match (capabilities.has_four_levels(), capabilities.is_coherent()) {
        (true, _) => domain.root(),
        (false, true) => third_level(memory, domain.root())?,
        (false, false) => third_level(&mut WrittenBack(memory), domain.root())?,
    };
    Ok(Context::translated(top, capabilities.has_four_levels(), domain.id()))
}

/// Returns the smallest power of two of pages, aligned to its size, that has all of these bytes; `None` if there is
/// none.
fn mask_of(address: u64, bytes: u64) -> Option<u32> {
    let last = address.checked_add(bytes.checked_sub(1)?)?;
    let differing = u64::BITS - ((address ^ last) / PAGE_BYTES).leading_zeros();
    (differing < 52).then_some(differing)
}
