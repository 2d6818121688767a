// SPDX-License-Identifier: MIT OR Apache-2.0
//! KVM's paravirtual clock: how an unmodified Linux reads the time without an exit.
//!
//! The guest names an area of its memory by MSR; the monitor writes there how the time stamp counter becomes
//! nanoseconds:
//!
//! ```text
//! now = system_time + ((tsc - tsc_timestamp) shifted by shift) * multiplier / 2^32
//! ```
//!
//! The version is odd while an area is being written; a reader tries again until it has seen the same even version
//! before and after. With `is_stable` all CPUs' areas agree and Linux reads them in user space. (Linux
//! documentation, "KVM-specific MSRs"; the layout is `pvclock-abi.h`'s.)

use core::sync::atomic::{Ordering, fence};

use crate::addr::Gpa;
use crate::devices::{GeneralProtection, GuestTsc, StateError};
use crate::memory::{GuestMemory, OutOfRange};

#[cfg(test)]
mod tests;

const NANOSECONDS_PER_SECOND: u128 = 1_000_000_000;
/// Frequencies that a time stamp counter can have.
const SLOWEST_HZ: u64 = 1_000_000;
const FASTEST_HZ: u64 = 1_000_000_000_000;

/// Flags of a clock area.
const FLAG_STABLE: u8 = 1 << 0;
const FLAG_WAS_PAUSED: u8 = 1 << 1;
/// Bytes of a clock area, of which the first four are the version.
const CLOCK_BYTES: usize = 32;
const VERSION_BYTES: usize = 4;

const ENABLE: u64 = 1 << 0;
/// Below the address: bit 0 enables, bit 1 must be zero.
const ADDRESS: u64 = !0b11;

/// Ticks to nanoseconds, as the guest computes it: shift first, then multiply by a fraction of 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscScale {
    /// Fraction in units of 2^-32; the top bit is always set.
    multiplier: u32,
    /// Left shift, or right if negative.
    shift: i8,
}

impl TscScale {
    /// The scale for a frequency between 1 MHz and 1 THz; it errs by less than 0.25 parts per billion.
    pub fn from_hz(tsc_hz: u64) -> Option<Self> {
        if !(SLOWEST_HZ..=FASTEST_HZ).contains(&tsc_hz) {
            return None;
        }
        let mut shift = 0_i8;
        // The tick, in units of 2^-64 ns; normalized until its integer part is gone and its top bit is set.
        let mut tick = (NANOSECONDS_PER_SECOND << 64) / u128::from(tsc_hz);
        while tick >= 1 << 64 {
            tick >>= 1;
            shift += 1;
        }
        while tick < 1 << 63 {
            tick <<= 1;
            shift -= 1;
        }
        let rounded = (tick + (1 << 31)) >> 32;
        Some(match u32::try_from(rounded) {
            Ok(multiplier) => Self { multiplier, shift },
            Err(_) => Self { multiplier: 1 << 31, shift: shift + 1 },
        })
    }

    /// The fraction and the shift, for the next image.
    pub const fn parts(self) -> (u32, i8) {
        (self.multiplier, self.shift)
    }

    /// A scale from its parts: one that [`Self::from_hz`] gives for some frequency.
    pub fn from_parts(multiplier: u32, shift: i8) -> Option<Self> {
        let slowest = Self::from_hz(SLOWEST_HZ)?.shift;
        let fastest = Self::from_hz(FASTEST_HZ)?.shift;
        let is_possible = multiplier >> 31 == 1 && (fastest..=slowest).contains(&shift);
        is_possible.then_some(Self { multiplier, shift })
    }

    /// Nanoseconds that a number of ticks takes; wraps where the guest's own 64 bits do.
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        let ticks = u128::from(ticks);
        let shifted = if self.shift < 0 { ticks >> self.shift.unsigned_abs() } else { ticks << self.shift };
        ((shifted * u128::from(self.multiplier)) >> 32) as u64
    }
}

/// An area of guest memory that an MSR names: address and enable bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SharedArea {
    msr: u64,
}

impl SharedArea {
    /// The area that a write to the MSR names; #GP if it is not 4-byte aligned.
    pub fn from_msr(value: u64) -> Result<Self, GeneralProtection> {
        if value & !(ADDRESS | ENABLE) != 0 {
            return Err(GeneralProtection);
        }
        Ok(Self { msr: value })
    }

    /// Returns the value that the MSR reads as.
    pub fn msr(self) -> u64 {
        self.msr
    }

    /// Returns where the area is; `None` while it is off.
    pub fn address(self) -> Option<Gpa> {
        (self.msr & ENABLE != 0).then_some(Gpa(self.msr & ADDRESS))
    }
}

/// The time that is published to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTime {
    /// The guest's time stamp counter at that time.
    pub tsc: GuestTsc,
    /// Nanoseconds since the guest's boot at that time.
    pub system_time_ns: u64,
    /// The conversion from ticks to nanoseconds.
    pub scale: TscScale,
    /// All CPUs of the guest share one time.
    pub is_stable: bool,
    /// The guest was paused since it last checked the flag: its watchdogs are to be lenient.
    pub was_paused: bool,
}

/// One vCPU's clock area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VcpuClock {
    area: SharedArea,
    /// Even: nothing is being written between calls.
    version: u32,
}

/// [`VcpuClock`] as it is carried to the next image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VcpuClockState {
    /// The MSR's value.
    pub msr: u64,
    /// The version last written.
    pub version: u32,
}

impl VcpuClock {
    /// The guest wrote the system time MSR. Publish next.
    pub fn write_msr(&mut self, value: u64) -> Result<(), GeneralProtection> {
        self.area = SharedArea::from_msr(value)?;
        Ok(())
    }

    /// Returns the value that the system time MSR reads as.
    pub fn read_msr(&self) -> u64 {
        self.area.msr()
    }

    /// Writes the time into the guest's area, if there is one. An area outside of guest memory is the guest's loss: the
    /// error is for the log.
    pub fn publish(&mut self, memory: &impl GuestMemory, time: &ClockTime) -> Result<(), OutOfRange> {
        let Some(area) = self.area.address() else { return Ok(()) };
        let after = self.version.wrapping_add(2);
        let bytes = encode(time);
        publish(memory, area, after, &bytes[VERSION_BYTES..])?;
        self.version = after;
        Ok(())
    }

    /// The state for the next image.
    pub fn state(&self) -> VcpuClockState {
        VcpuClockState { msr: self.area.msr(), version: self.version }
    }

    /// A clock from its saved state.
    pub fn from_state(state: &VcpuClockState) -> Result<Self, StateError> {
        let refused = |field, reason| StateError { field, reason };
        let area = SharedArea::from_msr(state.msr).map_err(|_| refused("clock.msr", "the address is not aligned"))?;
        if !state.version.is_multiple_of(2) {
            return Err(refused("clock.version", "it is odd: a write was under way"));
        }
        Ok(Self { area, version: state.version })
    }
}

/// `pvclock_vcpu_time_info`; the version is left zero.
fn encode(time: &ClockTime) -> [u8; CLOCK_BYTES] {
    let mut bytes = [0; CLOCK_BYTES];
    bytes[8..16].copy_from_slice(&time.tsc.0.to_le_bytes());
    bytes[16..24].copy_from_slice(&time.system_time_ns.to_le_bytes());
    bytes[24..28].copy_from_slice(&time.scale.multiplier.to_le_bytes());
    bytes[28] = time.scale.shift.cast_unsigned();
    bytes[29] = if time.is_stable { FLAG_STABLE } else { 0 } | if time.was_paused { FLAG_WAS_PAUSED } else { 0 };
    bytes
}

/// Answers a write of the wall clock MSR: seconds and nanoseconds, since 1970, of the guest's boot.
pub fn write_wall_clock(memory: &impl GuestMemory, area: Gpa, boot_unix_ns: u64) -> Result<(), OutOfRange> {
    let mut version = [0; VERSION_BYTES];
    memory.read(area, &mut version)?;
    let after = (u32::from_le_bytes(version) & !1).wrapping_add(2);
    let (seconds, nanoseconds) = (boot_unix_ns / 1_000_000_000, boot_unix_ns % 1_000_000_000);
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&(seconds as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(nanoseconds as u32).to_le_bytes());
    publish(memory, area, after, &bytes)
}

/// Writes an area's body between an odd and an even version, in that order.
fn publish(memory: &impl GuestMemory, area: Gpa, after: u32, body: &[u8]) -> Result<(), OutOfRange> {
    let body_start = area.checked_add(VERSION_BYTES as u64).ok_or(OutOfRange { gpa: area, bytes: CLOCK_BYTES })?;
    memory.write(area, &after.wrapping_sub(1).to_le_bytes())?;
    fence(Ordering::Release);
    memory.write(body_start, body)?;
    fence(Ordering::Release);
    memory.write(area, &after.to_le_bytes())
}
