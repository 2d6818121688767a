// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring of what the unit has refused (section 2.5). It is polled.

use core::fmt;

use pci::Bdf;
use units::PhysAddr;

use super::registers::{self, ADDRESS, EVENT_BASE, EVENT_HEAD, EVENT_TAIL, STATUS, control, status};
use super::registers::{change_control, read_pointer, read_present, ring_base, stop_ring};
use crate::{Access, Fault, FaultReason, Memory, Problem, Registers, wait_for};

/// Bytes of the ring: 512 events.
const RING_BYTES: u64 = 8192;
const EVENT_BYTES: u64 = 16;
/// Microseconds within which an event is in memory, once the tail has passed it.
const EVENT_WAIT_US: u32 = 100;

/// An entry of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An access was refused.
    Fault(Fault),
    /// The unit refuses a command, and takes none any more: a defect of the host or of the unit.
    BadCommand {
        /// Address of the command.
        at: PhysAddr,
        /// It could not be read.
        is_hardware: bool,
    },
    /// A function's own cache did not answer in time.
    DeviceCacheTimeout {
        /// The function.
        source: Bdf,
    },
    /// An event of this code, of which nothing more is known.
    Unknown(u8),
    /// The log was full, so that events were lost.
    Lost,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::BadCommand { at, is_hardware: true } => write!(f, "it could not read its command at {at}"),
            Self::BadCommand { at, is_hardware: false } => write!(f, "it does not know its command at {at}"),
            Self::DeviceCacheTimeout { source } => write!(f, "{source} did not invalidate its own cache in time"),
            Self::Unknown(code) => write!(f, "unknown event {code:#x}"),
            Self::Lost => f.write_str("its event log was full: events were lost"),
        }
    }
}

/// Bits of an event's first word: a memory request's or an interrupt's (I), what it asks for is there (PR), it was a
/// write (RW), a right was missing (PE), a reserved bit was set (RZ), it asked for a translation (TR).
mod flag {
    pub(super) const INTERRUPT: u64 = 1 << 51;
    pub(super) const PRESENT: u64 = 1 << 52;
    pub(super) const WRITE: u64 = 1 << 53;
    pub(super) const DENIED: u64 = 1 << 54;
    pub(super) const RESERVED: u64 = 1 << 55;
    pub(super) const TRANSLATION: u64 = 1 << 56;
}

impl Event {
    /// Returns what a log entry of a unit of this segment states. Of an interrupt, the address is the message's. RW is
    /// defined for a page that is present only: a unit may report other refused writes as reads.
    pub(super) fn decode(segment: u16, [first, address]: [u64; 2]) -> Self {
        let source = Bdf::of_requester(segment, first as u16);
        let code = (first >> 60) as u8;
        let access = match first {
            _ if is_interrupt(first, address) => Access::Interrupt,
            _ if first & flag::WRITE != 0 => Access::Write,
            _ => Access::Read,
        };
        let reason = match code {
            1 | 3 | 4 => FaultReason::BadTable(code),
            2 => page_fault(first, access),
            5 | 6 => return Self::BadCommand { at: PhysAddr(address), is_hardware: code == 6 },
            7 => return Self::DeviceCacheTimeout { source },
            8 => FaultReason::Other(code),
            _ => return Self::Unknown(code),
        };
        Self::Fault(Fault { source, address, access, reason })
    }
}

/// Returns whether an interrupt was refused: I is set, and the address is one of interrupts, as CPUs or HyperTransport
/// have it. QEMU's unit sets I for memory, too.
fn is_interrupt(first: u64, address: u64) -> bool {
    let is_address = address >> 20 == 0xfee || address >> 24 & 0xffff == 0xfdf8;
    first & flag::INTERRUPT != 0 && is_address
}

fn page_fault(first: u64, access: Access) -> FaultReason {
    match first {
        _ if first & flag::RESERVED != 0 => FaultReason::BadTable(2),
        _ if first & flag::TRANSLATION != 0 => FaultReason::Other(2),
        _ if access == Access::Interrupt => FaultReason::NotOpened,
        _ if first & flag::PRESENT != 0 && first & flag::DENIED != 0 => FaultReason::NotAllowed,
        _ => FaultReason::NotMapped,
    }
}

/// The ring.
#[derive(Debug)]
pub(super) struct EventLog {
    base: PhysAddr,
    segment: u16,
}

impl EventLog {
    /// Creates an empty log. The unit does not know of it yet.
    pub(super) fn create(memory: &mut impl Memory, segment: u16) -> Result<Self, Problem> {
        let base = memory.allocate_piece(RING_BYTES).ok_or(Problem::OutOfMemory)?;
        Ok(Self { base, segment })
    }

    /// Adopts the log that the unit uses.
    ///
    /// # Errors
    /// [`Problem::NotAdopted`] if it is none of [`EventLog::create`]'s or lies outside of `is_ours`.
    pub(super) fn adopt(
        registers: &mut impl Registers,
        segment: u16,
        is_ours: &impl Fn(PhysAddr, u64) -> bool,
    ) -> Result<Self, Problem> {
        let register = read_present(registers, EVENT_BASE, "Event Log Base")?;
        let base = PhysAddr(register & ADDRESS);
        if register != ring_base(base.0, RING_BYTES) || !base.is_aligned(RING_BYTES) {
            return Err(Problem::NotAdopted { reason: "the event log has another size or alignment" });
        }
        if !is_ours(base, RING_BYTES) {
            return Err(Problem::NotAdopted { reason: "the event log is not in the host's memory" });
        }
        read_pointer(registers, EVENT_HEAD, "Event Log Head", RING_BYTES)?;
        read_pointer(registers, EVENT_TAIL, "Event Log Tail", RING_BYTES)?;
        Ok(Self { base, segment })
    }

    /// Names the log to a unit that logs nothing, and empties it.
    pub(super) fn install(&self, registers: &mut impl Registers) {
        // First, for QEMU's unit ignores the base while an interrupt is pending.
        registers.write64(STATUS, status::EVENT_OVERFLOW | status::EVENT_INTERRUPT);
        registers.write64(EVENT_BASE, ring_base(self.base.0, RING_BYTES));
        registers.write32(EVENT_HEAD, 0);
        registers.write32(EVENT_TAIL, 0);
    }

    /// Gives the memory back. The unit must not use it any more.
    pub(super) fn free(self, memory: &mut impl Memory) {
        memory.free_piece(self.base, RING_BYTES);
    }

    /// Takes the oldest event; when there is none and the log has overflowed, restarts it.
    ///
    /// # Errors
    /// [`Problem::Absurd`] if a pointer is outside of the ring, [`Problem::NoAnswer`] if the log cannot be restarted.
    pub(super) fn next<R: Registers, M: Memory>(
        &self,
        registers: &mut R,
        memory: &mut M,
    ) -> Result<Option<Event>, Problem> {
        let head = read_pointer(registers, EVENT_HEAD, "Event Log Head", RING_BYTES)?;
        let tail = read_pointer(registers, EVENT_TAIL, "Event Log Tail", RING_BYTES)?;
        if head == tail {
            return self.restart(registers);
        }
        let at = PhysAddr(self.base.0 + head);
        let event = take(registers, memory, at);
        registers.write32(EVENT_HEAD, ((head + EVENT_BYTES) % RING_BYTES) as u32);
        Ok(Some(event.map_or(Event::Lost, |words| Event::decode(self.segment, words))))
    }

    /// Restarts a log that has stopped because it was full (section 2.5.1).
    fn restart<R: Registers>(&self, registers: &mut R) -> Result<Option<Event>, Problem> {
        let value = read_present(registers, STATUS, "Status")?;
        if value & status::EVENT_OVERFLOW == 0 {
            return Ok(None);
        }
        Self::stop(registers)?;
        self.install(registers);
        change_control(registers, control::EVENT_LOG, 0);
        wait_for(registers, "starting its event log", |registers| {
            registers.read64(STATUS) & status::EVENT_LOG_RUNS != 0
        })?;
        Ok(Some(Event::Lost))
    }

    /// Stops the log.
    pub(super) fn stop(registers: &mut impl Registers) -> Result<(), Problem> {
        let running = registers::status::EVENT_LOG_RUNS;
        stop_ring(registers, control::EVENT_LOG, running, "stopping its event log")
    }
}

/// Takes the words of an event, and clears them for the next lap: the tail may be seen before them. `None` if they
/// do not come.
fn take(registers: &mut impl Registers, memory: &mut impl Memory, at: PhysAddr) -> Option<[u64; 2]> {
    let second = PhysAddr(at.0 + 8);
    for _ in 0..EVENT_WAIT_US {
        let first = memory.read_word(at);
        if first >> 60 != 0 {
            let words = [first, memory.read_word(second)];
            memory.write_word(at, 0);
            memory.write_word(second, 0);
            return Some(words);
        }
        registers.pause();
    }
    None
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
