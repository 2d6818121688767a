// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking a unit over from firmware or another kernel, adopting it from an image before, and leaving it.

use units::PhysAddr;

use super::commands::{Command, CommandBuffer};
use super::device_table::{DeviceTable, FirmwareFlags, Reach, Remapping};
use super::events::EventLog;
use super::interrupts::{EntryFormat, InterruptTable};
use super::registers::{CONTROL, EXCLUSION_BASE, Features, STATUS, change_control, control, read_present, status};
use super::unit::Unit;
use crate::{DomainId, Memory, Problem, Registers, wait_for};

/// A requester that is not to be blocked when the unit is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requester {
    /// Bus, device and function as the unit sees them.
    pub requester: u16,
    /// Firmware's settings for it: the IVHD entry's "DTE setting" (section 5.2.2.2).
    pub flags: u8,
    /// Its interrupts pass as they are: an I/O APIC's or an HPET's.
    pub passes_interrupts: bool,
    /// The domain that it reaches: of memory that firmware reserves for it.
    pub domain: Option<(DomainId, PhysAddr)>,
}

/// The parameters for taking a unit over.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The PCI segment of its functions.
    pub segment: u16,
    /// The highest requester behind it. The table may have entries for more; a requester without an entry is refused.
    pub highest: u16,
    /// The flags of its IVHD (section 5.2.2.1): HtTunEn, PassPW, ResPassPW, Isoc in bits 0 to 3. Others are ignored.
    pub flags: u8,
    /// The host's local APICs are in x2APIC mode.
    pub is_x2apic: bool,
    /// The requesters that are not to be blocked.
    pub requesters: &'a [Requester],
}

/// PPRLogRun and GALogRun: logs for which Baton has no use.
const OTHER_LOGS_RUN: u64 = 1 << 7 | 1 << 8;
/// PPRLogEn, PPREn, GALogEn.
const OTHER_LOGS: u64 = 1 << 13 | 1 << 15 | 1 << 28;
/// DevTblSegEn: parts of the device table lie elsewhere.
const SEGMENTS: u64 = 0b111 << 34;

impl Setup<'_> {
    /// Returns the bits of the control register for a unit in use, less those of [`format_bits`].
    fn control(&self) -> u64 {
        let firmware = u64::from(self.flags);
        let firmware = (firmware & 1) << 1 | (firmware >> 1 & 0b11) << 8 | (firmware >> 3 & 1) << 11;
        firmware | control::ENABLE | control::COMMANDS | control::EVENT_LOG | control::COHERENT
    }

    fn format(&self, features: Features) -> EntryFormat {
        match (features.has_wide_interrupts, features.has_x2apic && self.is_x2apic) {
            (false, _) => EntryFormat::Narrow,
            (true, false) => EntryFormat::Wide,
            (true, true) => EntryFormat::WideX2apic,
        }
    }

    fn fill(&self, memory: &mut impl Memory, table: &DeviceTable) {
        for Requester { requester, flags, passes_interrupts, domain } in self.requesters.iter().copied() {
            if requester > table.highest() {
                continue;
            }
            if let Some((id, root)) = domain {
                table.set_reach(memory, requester, Reach::Domain(id, root));
            }
            if passes_interrupts {
                table.set_remapping(memory, requester, Remapping::Passed);
            }
            table.add_flags(memory, requester, FirmwareFlags(flags));
        }
    }
}

/// Returns the bits of the control register for a format of interrupts.
fn format_bits(format: EntryFormat) -> u64 {
    match format {
        EntryFormat::Narrow => 0,
        EntryFormat::Wide => control::WIDE_INTERRUPTS,
        EntryFormat::WideX2apic => control::WIDE_INTERRUPTS | control::X2APIC,
    }
}

impl Unit {
    /// Takes over a unit that is in reset, or that its owner before has left enabled. All requesters but those named
    /// are blocked; requests are checked throughout, first by the tables of the owner before.
    ///
    /// Interrupts that the owner before had remapped, an I/O APIC's too, are lost: the caller masks them first.
    ///
    /// # Errors
    /// [`Problem::Absurd`], [`Problem::Lacks`], [`Problem::OutOfMemory`]: nothing has changed. [`Problem::NoAnswer`]:
    /// the unit may use the new tables, which are never given back.
    pub fn take_over<R: Registers, M: Memory>(
        registers: &mut R,
        memory: &mut M,
        setup: &Setup<'_>,
    ) -> Result<Self, Problem> {
        let features = Features::read(registers)?;
        let found = read_present(registers, CONTROL, "Control")?;
        let mut unit = Self::create(memory, setup, features)?;
        if let Err(problem) = stop_logs(registers) {
            unit.free(memory);
            return Err(problem);
        }
        unit.install(registers, setup, found);
        unit.invalidate_all(registers, memory)?;
        // No interrupt is remapped by now, so that no entry is read in the wrong format.
        registers.write64(CONTROL, setup.control() | format_bits(unit.format));
        Ok(unit)
    }

    /// Adopts a unit that an image before has left running. Nothing is written, neither to registers nor to memory.
    /// `is_ours` states whether a range (address and bytes) is memory that the host had for such tables.
    ///
    /// # Errors
    /// [`Problem::NotAdopted`] with what is wrong, [`Problem::Absurd`], [`Problem::Lacks`].
    pub fn adopt<R: Registers, M: Memory>(
        registers: &mut R,
        memory: &M,
        (segment, highest): (u16, u16),
        is_ours: impl Fn(PhysAddr, u64) -> bool,
    ) -> Result<Self, Problem> {
        let features = Features::read(registers)?;
        let format = adopted_format(registers)?;
        let table = DeviceTable::adopt(registers, highest, &is_ours)?;
        let commands = CommandBuffer::adopt(registers, memory, &is_ours)?;
        let events = EventLog::adopt(registers, segment, &is_ours)?;
        Ok(Self { segment, features, format, table, commands, events })
    }

    /// Disables the unit, for software that knows nothing of it: functions reach all memory from here on. The caller
    /// keeps them from it (bus mastering) until their next owner.
    ///
    /// # Errors
    /// [`Problem::NoAnswer`]: the unit is disabled all the same; its memory is then never given back.
    pub fn leave<R: Registers, M: Memory>(self, registers: &mut R, memory: &mut M) -> Result<(), Problem> {
        let stopped = EventLog::stop(registers).and(CommandBuffer::stop(registers));
        // IommuEn first: the bits that state a format may only change in a unit that is disabled.
        change_control(registers, 0, control::ENABLE);
        registers.write64(CONTROL, 0);
        stopped?;
        for requester in 0..=self.table.highest() {
            self.free_interrupts(memory, requester);
        }
        self.free(memory);
        Ok(())
    }

    fn create(memory: &mut impl Memory, setup: &Setup<'_>, features: Features) -> Result<Self, Problem> {
        let table = DeviceTable::create(memory, setup.highest)?;
        let commands = match CommandBuffer::create(memory) {
            Ok(commands) => commands,
            Err(problem) => {
                table.free(memory);
                return Err(problem);
            }
        };
        let events = match EventLog::create(memory, setup.segment) {
            Ok(events) => events,
            Err(problem) => {
                table.free(memory);
                commands.free(memory);
                return Err(problem);
            }
        };
        setup.fill(memory, &table);
        let format = setup.format(features);
        Ok(Self { segment: setup.segment, features, format, table, commands, events })
    }

    /// Enables the unit with the new tables, or changes to them while it is enabled. The format of interrupts stays as
    /// it was `found` in a unit that is enabled.
    fn install(&self, registers: &mut impl Registers, setup: &Setup<'_>, found: u64) {
        self.commands.install(registers);
        self.events.install(registers);
        self.table.install(registers);
        let formats = control::WIDE_INTERRUPTS | control::X2APIC;
        if found & control::ENABLE == 0 {
            registers.write64(CONTROL, setup.control() & !control::ENABLE | format_bits(self.format));
            registers.write64(CONTROL, setup.control() | format_bits(self.format));
        } else {
            registers.write64(CONTROL, setup.control() | found & formats);
        }
        if registers.read64(EXCLUSION_BASE) & 1 != 0 {
            registers.write64(EXCLUSION_BASE, 0);
        }
    }

    fn invalidate_all<R: Registers, M: Memory>(&mut self, registers: &mut R, memory: &mut M) -> Result<(), Problem> {
        if self.features.has_invalidate_all {
            self.commands.push(registers, memory, Command::InvalidateAll)?;
            return self.commands.finish(registers, memory);
        }
        for requester in 0..=self.table.highest() {
            self.commands.push(registers, memory, Command::InvalidateDeviceTableEntry { requester })?;
            self.commands.push(registers, memory, Command::InvalidateInterruptTable { requester })?;
        }
        for domain in 0..=u16::MAX {
            self.commands.push(registers, memory, Command::invalidate_domain(DomainId(domain)))?;
        }
        self.commands.finish(registers, memory)
    }

    /// Frees the interrupt table of a requester, once the unit has stopped reading it.
    fn free_interrupts(&self, memory: &mut impl Memory, requester: u16) {
        if let Remapping::Table(at, length) = self.table.remapping(memory, requester) {
            InterruptTable { at, length, format: self.format }.free(memory);
        }
    }

    fn free(self, memory: &mut impl Memory) {
        self.table.free(memory);
        self.commands.free(memory);
        self.events.free(memory);
    }
}

/// Stops what the owner before may have enabled and what would go on in its memory; requests are checked on.
fn stop_logs(registers: &mut impl Registers) -> Result<(), Problem> {
    CommandBuffer::stop(registers)?;
    EventLog::stop(registers)?;
    change_control(registers, 0, OTHER_LOGS);
    wait_for(registers, "stopping its other logs", |registers| registers.read64(STATUS) & OTHER_LOGS_RUN == 0)
}

/// Returns the format of interrupts of a unit that is in use as [`Unit::take_over`] leaves it.
fn adopted_format(registers: &mut impl Registers) -> Result<EntryFormat, Problem> {
    let refused = |reason| Err(Problem::NotAdopted { reason });
    let value = read_present(registers, CONTROL, "Control")?;
    let needed = control::ENABLE | control::COMMANDS | control::EVENT_LOG;
    if value & needed != needed {
        return refused("the unit, its command buffer or its event log is disabled");
    }
    if value & SEGMENTS != 0 {
        return refused("the device table is in segments");
    }
    if registers.read64(EXCLUSION_BASE) & 1 != 0 {
        return refused("a range of memory is excluded from translation");
    }
    if read_present(registers, STATUS, "Status")? & status::COMMANDS_RUN == 0 {
        return refused("the unit has stopped at a command");
    }
    match (value & control::WIDE_INTERRUPTS != 0, value & control::X2APIC != 0) {
        (false, true) => refused("it has destinations of 32 bits in narrow interrupts"),
        (false, false) => Ok(EntryFormat::Narrow),
        (true, false) => Ok(EntryFormat::Wide),
        (true, true) => Ok(EntryFormat::WideX2apic),
    }
}
