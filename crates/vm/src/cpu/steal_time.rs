// SPDX-License-Identifier: MIT OR Apache-2.0
//! KVM's steal time: how a guest learns for how long its CPU wanted to run and others had the real one.
//!
//! The guest names 64 bytes of its memory by MSR. Its kernel then takes the stolen time off what it charges its tasks,
//! and does not spin for a lock whose owner is not running:
//!
//! | bytes | contents |
//! |---|---|
//! | 0–7 | stolen time in nanoseconds |
//! | 8–11 | version: odd while the area is being written |
//! | 12–15 | flags: none |
//! | 16 | bit 0: the CPU has been preempted; bit 1, set by the guest: it is to flush its TLB before it goes on |
//! | 17–63 | zero |
//!
//! (Linux documentation, "KVM-specific MSRs", MSR_KVM_STEAL_TIME.) The number only ever grows, also when a kernel takes
//! its CPU offline and online again, or another kernel takes over with an area of its own: a kernel that saw it shrink
//! would take the difference for centuries. So it goes on from what the area holds, and time stolen while there is no
//! area is not reported.

use core::sync::atomic::{Ordering, fence};

use crate::addr::{AccessSize, Gpa};
use crate::devices::{GeneralProtection, StateError};
use crate::memory::{GuestMemory, OutOfRange};

#[cfg(test)]
mod tests;

const ENABLE: u64 = 1 << 0;
/// Bits 1–5 must be zero: the area is 64-byte aligned.
const RESERVED: u64 = 0b11_1110;

const VERSION_OFFSET: u64 = 8;
const PREEMPTED_OFFSET: u64 = 16;
const PREEMPTED: u8 = 1 << 0;
const FLUSH_TLB: u64 = 1 << 1;
/// A guest that changes the flags more often while they are being cleared has its TLB flushed.
const TRIES: u32 = 4;

/// One vCPU's steal time area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StealTime {
    state: StealTimeState,
}

/// [`StealTime`] as it is carried to the next image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StealTimeState {
    /// The MSR's value.
    pub msr: u64,
    /// The version last written.
    pub version: u32,
    /// Nanoseconds that the guest has been informed of.
    pub reported_ns: u64,
    /// Nanoseconds stolen when last heard of.
    pub stolen_ns: u64,
}

impl StealTime {
    /// The guest wrote the MSR: #GP if the area is not 64-byte aligned. An area outside of guest memory is the guest's
    /// loss: it will never be written.
    pub fn write_msr(&mut self, memory: &impl GuestMemory, value: u64) -> Result<(), GeneralProtection> {
        if value & RESERVED != 0 {
            return Err(GeneralProtection);
        }
        self.state.msr = value;
        let mut reported_ns = [0; 8];
        if let Some(area) = self.area()
            && memory.read(area, &mut reported_ns).is_ok()
        {
            self.state.reported_ns = u64::from_le_bytes(reported_ns);
        }
        Ok(())
    }

    /// Returns the value that the MSR reads as: the one that was written.
    pub fn read_msr(&self) -> u64 {
        self.state.msr
    }

    /// The CPU has the real one again, of which others had `stolen_ns` in all so far: reports that to the guest, if it
    /// wants to know. An area outside of guest memory is the guest's loss: the error is for the log.
    ///
    /// Returns whether the TLB is to be flushed before the guest goes on, if it was shown that it may ask for that.
    pub fn publish(
        &mut self,
        memory: &impl GuestMemory,
        stolen_ns: u64,
        may_ask_for_flush: bool,
    ) -> Result<bool, OutOfRange> {
        let more_ns = stolen_ns.saturating_sub(self.state.stolen_ns);
        self.state.stolen_ns = stolen_ns;
        let Some(area) = self.area() else { return Ok(false) };
        self.state.reported_ns = self.state.reported_ns.wrapping_add(more_ns);
        let (writing, written) = (self.state.version.wrapping_add(1), self.state.version.wrapping_add(2));
        let version = Gpa(area.0 | VERSION_OFFSET);
        memory.write(version, &writing.to_le_bytes())?;
        fence(Ordering::Release);
        memory.write(area, &self.state.reported_ns.to_le_bytes())?;
        let flags = Gpa(area.0 | PREEMPTED_OFFSET);
        let flushes = may_ask_for_flush && take_flush(memory, flags)?;
        if !may_ask_for_flush {
            memory.write(flags, &[0])?;
        }
        fence(Ordering::Release);
        memory.write(version, &written.to_le_bytes())?;
        self.state.version = written;
        Ok(flushes)
    }

    /// The CPU loses the real one although it wants to run: others need not spin for locks that it holds. The
    /// next [`StealTime::publish`] takes this back.
    pub fn mark_preempted(&self, memory: &impl GuestMemory) -> Result<(), OutOfRange> {
        let Some(area) = self.area() else { return Ok(()) };
        memory.write(Gpa(area.0 | PREEMPTED_OFFSET), &[PREEMPTED])
    }

    /// The state for the next image.
    pub fn state(&self) -> StealTimeState {
        self.state
    }

    /// Steal time from its saved state.
    pub fn from_state(state: &StealTimeState) -> Result<Self, StateError> {
        let refused = |field, reason| Err(StateError { field, reason });
        if state.msr & RESERVED != 0 {
            return refused("steal_time.msr", "the address is not aligned");
        }
        if !state.version.is_multiple_of(2) {
            return refused("steal_time.version", "it is odd: a write was under way");
        }
        Ok(Self { state: *state })
    }

    /// Returns where the area is; `None` while it is off. Its low six bits are zero.
    fn area(&self) -> Option<Gpa> {
        (self.state.msr & ENABLE != 0).then_some(Gpa(self.state.msr & !(ENABLE | RESERVED)))
    }
}

/// Clears the flags in one locked access, since other vCPUs ask for a flush as long as they see this one preempted.
/// Returns whether one did.
fn take_flush(memory: &impl GuestMemory, flags: Gpa) -> Result<bool, OutOfRange> {
    for _ in 0..TRIES {
        let mut bytes = [0; 4];
        memory.read(flags, &mut bytes)?;
        let found = u32::from_le_bytes(bytes).into();
        if memory.compare_exchange(flags, AccessSize::Dword, found, 0)? {
            return Ok(found & FLUSH_TLB != 0);
        }
    }
    memory.write(flags, &[0; 4])?;
    Ok(true)
}
