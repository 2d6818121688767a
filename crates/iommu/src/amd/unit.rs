// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit: what is asked of it while it runs.
//!
//! The memory that functions reach, and the interrupts that they send, are kept in the unit's own tables only. An image
//! that adopts the unit needs nothing else.

use pci::Bdf;
use units::PhysAddr;

use super::commands::{Command, CommandBuffer};
use super::device_table::{DeviceTable, Reach, Remapping};
use super::events::EventLog;
use super::format::AmdFormat;
use super::interrupts::{self, EntryFormat, InterruptTable};
use super::registers::Features;
use super::{Event, MOST_INTERRUPTS};
use crate::{Domain, DomainId, Interrupt, Memory, Message, Problem, Registers};

/// A unit that runs.
///
/// A change that ends in [`Problem::NoAnswer`] is in the tables, but the unit may still use their previous content:
/// the caller must not reuse memory that the function reached.
#[derive(Debug)]
pub struct Unit {
    pub(super) segment: u16,
    pub(super) features: Features,
    pub(super) format: EntryFormat,
    pub(super) table: DeviceTable,
    pub(super) commands: CommandBuffer,
    pub(super) events: EventLog,
}

impl Unit {
    /// Lets a function reach what `domain` maps, and nothing else. Its interrupts stay as they are; what firmware asked
    /// for it (SysMgt) ends. One that was stopped is not any more.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::NoAnswer`].
    pub fn attach<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        source: Bdf,
        domain: &Domain<AmdFormat>,
    ) -> Result<(), Problem> {
        let requester = self.requester(source)?;
        if self.table.remapping(memory, requester) == Remapping::Stopped {
            self.set_remapping(registers, memory, requester, Remapping::Refused)?;
        }
        self.set_reach(registers, memory, requester, Reach::Domain(domain.id(), domain.root()))?;
        // The number may have been another domain's before.
        self.commands.push(registers, memory, Command::invalidate_domain(domain.id()))?;
        self.commands.finish(registers, memory)
    }

    /// Lets a function reach nothing and send no interrupt. One that was stopped stays stopped.
    ///
    /// # Errors
    /// [`Problem::NotHere`], [`Problem::NoAnswer`]; its interrupt table is then never given back.
    pub fn block<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        source: Bdf,
    ) -> Result<(), Problem> {
        let nothing = if self.is_stopped(memory, source)? {
            (Reach::Stopped, Remapping::Stopped)
        } else {
            (Reach::Nothing, Remapping::Refused)
        };
        self.refuse(registers, memory, source, nothing)
    }

    /// Blocks a function, and has the unit log nothing of what it refuses the function (section 2.2.2.1, SA and IG),
    /// until the function is attached.
    ///
    /// # Errors
    /// Those of [`block`](Self::block).
    pub fn stop<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        source: Bdf,
    ) -> Result<(), Problem> {
        self.refuse(registers, memory, source, (Reach::Stopped, Remapping::Stopped))
    }

    /// Returns whether a function was stopped, by this image or one before.
    ///
    /// # Errors
    /// [`Problem::NotHere`].
    pub fn is_stopped(&self, memory: &impl Memory, source: Bdf) -> Result<bool, Problem> {
        Ok(self.table.reach(memory, self.requester(source)?) == Reach::Stopped)
    }

    /// Returns the domain to which a function is attached, by its number and its top table; `None` if it is blocked.
    ///
    /// # Errors
    /// [`Problem::NotHere`].
    pub fn attached(&self, memory: &impl Memory, source: Bdf) -> Result<Option<(DomainId, PhysAddr)>, Problem> {
        Ok(match self.table.reach(memory, self.requester(source)?) {
            Reach::Domain(id, root) => Some((id, root)),
            Reach::Nothing | Reach::Stopped => None,
        })
    }

    /// Makes the unit read again what a domain maps: after every change of its tables, before memory or tables that it
    /// named are used for anything else.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`].
    pub fn invalidate<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        domain: DomainId,
    ) -> Result<(), Problem> {
        self.commands.push(registers, memory, Command::invalidate_domain(domain))?;
        self.commands.finish(registers, memory)
    }

    /// Does so for `bytes` bytes from `address`.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`].
    pub fn invalidate_range<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        domain: DomainId,
        address: u64,
        bytes: u64,
    ) -> Result<(), Problem> {
        self.commands.push(registers, memory, Command::invalidate_range(domain, address, bytes))?;
        self.commands.finish(registers, memory)
    }

    /// Gives a function at least `count` entries for interrupts, all of them closed. Those that it had are closed.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoInterrupt`] for none or more than [`MOST_INTERRUPTS`];
    /// [`Problem::OutOfMemory`]; [`Problem::NoAnswer`].
    pub fn open_interrupts<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        source: Bdf,
        count: u16,
    ) -> Result<(), Problem> {
        let requester = self.requester(source)?;
        if !(1..=MOST_INTERRUPTS).contains(&count) {
            return Err(Problem::NoInterrupt { source });
        }
        let table = InterruptTable::create(memory, count, self.format)?;
        self.set_remapping(registers, memory, requester, Remapping::Table(table.at, table.length))
    }

    /// Sends a function's interrupt `index` to a CPU, or nowhere.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoInterrupt`] if there is no such entry; [`Problem::FarDestination`];
    /// [`Problem::NoAnswer`].
    pub fn set_interrupt<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        source: Bdf,
        index: u16,
        interrupt: Option<Interrupt>,
    ) -> Result<(), Problem> {
        let requester = self.requester(source)?;
        self.opened(memory, source, index)?.set(memory, index, interrupt)?;
        self.commands.push(registers, memory, Command::InvalidateInterruptTable { requester })?;
        self.commands.finish(registers, memory)
    }

    /// Returns the destination of a function's interrupt `index`; `None` if it is closed.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoInterrupt`] if there is no such entry.
    pub fn interrupt(&self, memory: &impl Memory, source: Bdf, index: u16) -> Result<Option<Interrupt>, Problem> {
        Ok(self.opened(memory, source, index)?.get(memory, index))
    }

    /// Returns the message that a function writes to send its interrupt `index`.
    ///
    /// # Errors
    /// [`Problem::NotHere`]; [`Problem::NoInterrupt`] if there is no such entry.
    pub fn message(&self, memory: &impl Memory, source: Bdf, index: u16) -> Result<Message, Problem> {
        self.opened(memory, source, index).map(|_| interrupts::message(index))
    }

    /// Takes the oldest event of the log.
    ///
    /// # Errors
    /// [`Problem::Absurd`] if the unit has vanished; [`Problem::NoAnswer`] if its log was full and cannot be restarted.
    pub fn next_fault<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
    ) -> Result<Option<Event>, Problem> {
        self.events.next(registers, memory)
    }

    /// Returns the table of a function's interrupts, which has this entry.
    fn opened(&self, memory: &impl Memory, source: Bdf, index: u16) -> Result<InterruptTable, Problem> {
        match self.table.remapping(memory, self.requester(source)?) {
            Remapping::Table(at, length) if u32::from(index) < 1 << length => {
                Ok(InterruptTable { at, length, format: self.format })
            }
            _ => Err(Problem::NoInterrupt { source }),
        }
    }

    /// Replaces what a requester reaches; the caller finishes. What the domain before mapped is invalidated, too:
    /// QEMU's unit keeps translations by requester.
    fn set_reach<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        requester: u16,
        reach: Reach,
    ) -> Result<(), Problem> {
        let before = self.table.reach(memory, requester);
        self.table.set_reach(memory, requester, reach);
        self.commands.push(registers, memory, Command::InvalidateDeviceTableEntry { requester })?;
        match before {
            Reach::Domain(id, _) => self.commands.push(registers, memory, Command::invalidate_domain(id)),
            Reach::Nothing | Reach::Stopped => Ok(()),
        }
    }

    /// Replaces both halves of an entry. The second is replaced even if the unit does not answer to the first.
    fn refuse<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        source: Bdf,
        (reach, remapping): (Reach, Remapping),
    ) -> Result<(), Problem> {
        let requester = self.requester(source)?;
        let blocked = self.set_reach(registers, memory, requester, reach);
        let silenced = self.set_remapping(registers, memory, requester, remapping);
        blocked.and(silenced)
    }

    fn set_remapping<R: Registers, M: Memory>(
        &mut self,
        registers: &mut R,
        memory: &mut M,
        requester: u16,
        remapping: Remapping,
    ) -> Result<(), Problem> {
        let before = self.table.remapping(memory, requester);
        self.table.set_remapping(memory, requester, remapping);
        self.commands.push(registers, memory, Command::InvalidateDeviceTableEntry { requester })?;
        self.commands.push(registers, memory, Command::InvalidateInterruptTable { requester })?;
        self.commands.finish(registers, memory)?;
        if let Remapping::Table(at, length) = before {
            InterruptTable { at, length, format: self.format }.free(memory);
        }
        Ok(())
    }

    fn requester(&self, source: Bdf) -> Result<u16, Problem> {
        let requester = source.requester();
        let is_here = source.segment == self.segment && requester <= self.table.highest();
        if is_here { Ok(requester) } else { Err(Problem::NotHere { source }) }
    }
}
