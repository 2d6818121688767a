// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CMOS clock and its RAM: ports 0x70 and 0x71.
//!
//! A Motorola MC146818 as PCs have it: the time of day in registers, the century at 0x32, the rest is memory. The clock
//! is the host's, handed in with every access, plus an offset: a guest that sets its clock moves the offset. Updates
//! take no time, so "update in progress" is never seen, and no interrupt is wired: their enables do not stay set.
//!
//! While a guest holds the SET bit of register B, the time registers are plain memory and the clock is read from them
//! when it clears the bit. A nonsensical time is clamped to its range, field by field.

use super::StateError;

pub mod calendar;
mod on_bus;

use calendar::{LATEST, RegisterFormat, TIME_REGISTERS, TimeRegisters};

/// Bytes behind the index register.
pub const CMOS_BYTES: usize = 128;

/// Register A: divider and rate, plain memory here; bit 7, update in progress, stays clear.
const REGISTER_A: u8 = 0x0a;
/// 32,768 Hz crystal, 1,024 Hz rate: the value that firmware leaves there.
const REGISTER_A_RESET: u8 = 0x26;
const UPDATE_IN_PROGRESS: u8 = 1 << 7;
/// Register B: how the clock runs.
const REGISTER_B: u8 = 0x0b;
/// The guest holds the time registers.
const SET: u8 = 1 << 7;
/// Registers are binary, not BCD.
const BINARY: u8 = 1 << 2;
/// Hours are 0–23, not 1–12 with bit 7 for the afternoon.
const HOURS_24: u8 = 1 << 1;
/// Register C: interrupt causes, never any.
const REGISTER_C: u8 = 0x0c;
/// Register D: the battery is good.
const REGISTER_D: u8 = 0x0d;
const VALID: u8 = 1 << 7;

/// Everything about the clock that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmosState {
    /// The register selected by port 0x70.
    pub index: u8,
    /// Register A.
    pub register_a: u8,
    /// Register B.
    pub register_b: u8,
    /// Seconds that the guest's clock is ahead of the host's.
    pub offset_seconds: i64,
    /// The time registers as the guest left them, while it holds SET: seconds, minutes, hours, weekday, day, month,
    /// year, century.
    pub held_time: [u8; TIME_REGISTERS],
    /// Memory; the places of clock registers are unused.
    pub ram: [u8; CMOS_BYTES],
}

/// The clock with its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cmos {
    state: CmosState,
}

impl Default for Cmos {
    fn default() -> Self {
        Self::new()
    }
}

impl Cmos {
    /// A clock that shows the host's time in UTC, BCD and 24 hours.
    pub const fn new() -> Self {
        Self {
            state: CmosState {
                index: 0,
                register_a: REGISTER_A_RESET,
                register_b: HOURS_24,
                offset_seconds: 0,
                held_time: [0; TIME_REGISTERS],
                ram: [0; CMOS_BYTES],
            },
        }
    }

    /// Reads port 0x70 + `port_offset`. `now_unix_seconds` is the host's wall clock. The index cannot be read back.
    pub fn read(&self, port_offset: u8, now_unix_seconds: u64) -> u8 {
        if port_offset != 1 {
            return 0xff;
        }
        match self.state.index {
            REGISTER_A => self.state.register_a,
            REGISTER_B => self.state.register_b,
            REGISTER_C => 0,
            REGISTER_D => VALID,
            index => match calendar::time_register(index) {
                Some(position) => self.time(now_unix_seconds)[position],
                None => self.state.ram[usize::from(index) % CMOS_BYTES],
            },
        }
    }

    /// Writes port 0x70 + `port_offset`. Bit 7 of the index (the PC's NMI gate) is ignored.
    pub fn write(&mut self, port_offset: u8, value: u8, now_unix_seconds: u64) {
        match (port_offset, self.state.index) {
            (0, _) => self.state.index = value & 0x7f,
            (1, REGISTER_A) => self.state.register_a = value & !UPDATE_IN_PROGRESS,
            (1, REGISTER_B) => self.write_register_b(value, now_unix_seconds),
            (1, REGISTER_C | REGISTER_D) => {}
            (1, index) => self.write_memory(index, value, now_unix_seconds),
            _ => {}
        }
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> CmosState {
        self.state.clone()
    }

    /// The clock in a saved state.
    ///
    /// # Errors
    /// [`StateError`] if no clock can be in it.
    pub fn from_state(state: CmosState) -> Result<Self, StateError> {
        let refusals = [
            ("cmos.index", state.index > 0x7f),
            ("cmos.register_a", state.register_a & UPDATE_IN_PROGRESS != 0),
            ("cmos.register_b", state.register_b & !(SET | BINARY | HOURS_24) != 0),
        ];
        match refusals.into_iter().find(|(_, refused)| *refused) {
            Some((field, _)) => Err(StateError { field, reason: "a bit is set that always reads as zero" }),
            None => Ok(Self { state }),
        }
    }

    fn is_held(&self) -> bool {
        self.state.register_b & SET != 0
    }

    fn format(&self) -> RegisterFormat {
        RegisterFormat {
            is_binary: self.state.register_b & BINARY != 0,
            is_24_hours: self.state.register_b & HOURS_24 != 0,
        }
    }

    /// The time registers: held by the guest, or running.
    fn time(&self, now_unix_seconds: u64) -> TimeRegisters {
        if self.is_held() {
            return self.state.held_time;
        }
        calendar::encode(host_seconds(now_unix_seconds).saturating_add(self.state.offset_seconds), self.format())
    }

    fn set_time(&mut self, time: &TimeRegisters, now_unix_seconds: u64) {
        self.state.offset_seconds = calendar::decode(time, self.format()) - host_seconds(now_unix_seconds);
    }

    fn write_register_b(&mut self, value: u8, now_unix_seconds: u64) {
        let time = self.time(now_unix_seconds);
        let was_held = self.is_held();
        self.state.register_b = value & (SET | BINARY | HOURS_24);
        match (was_held, self.is_held()) {
            (false, true) => self.state.held_time = time,
            (true, false) => self.set_time(&time, now_unix_seconds),
            _ => {}
        }
    }

    fn write_memory(&mut self, index: u8, value: u8, now_unix_seconds: u64) {
        let Some(position) = calendar::time_register(index) else {
            self.state.ram[usize::from(index) % CMOS_BYTES] = value;
            return;
        };
        let mut time = self.time(now_unix_seconds);
        time[position] = value;
        if self.is_held() {
            self.state.held_time = time;
        } else {
            self.set_time(&time, now_unix_seconds);
        }
    }
}

/// The host's clock as a signed number, within the range of the registers.
fn host_seconds(now_unix_seconds: u64) -> i64 {
    i64::try_from(now_unix_seconds).unwrap_or(LATEST).min(LATEST)
}

#[cfg(test)]
mod tests;
