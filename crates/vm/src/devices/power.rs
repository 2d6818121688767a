// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power-off and reset registers.
//!
//! A hardware-reduced ACPI machine has no PM1 registers; it sleeps through one control byte (ACPI 6.5, section 4.8.3.7)
//! and wakes into one status byte (section 4.8.3.8). The only sleep this machine knows is S5: off. Reset is the PC's
//! port 0xcf9, which the FADT names as the reset register. There is no keyboard controller to pulse the reset line.

mod on_bus;

use super::StateError;
use crate::platform::layout::port;

/// Sleep control, bits 2–4: the sleep type.
const SLEEP_TYPE_SHIFT: u8 = 2;
const SLEEP_TYPE_MASK: u8 = 0b111 << SLEEP_TYPE_SHIFT;
/// Sleep control, bit 5: go to sleep now; reads as zero.
const SLEEP_ENABLE: u8 = 1 << 5;
/// Reset control, bit 1: the whole system rather than the CPU alone.
const RESET_SYSTEM: u8 = 1 << 1;
/// Reset control, bit 2: reset now; reads as zero.
const RESET_NOW: u8 = 1 << 2;
/// Reset control, bit 3: as a power cycle.
const RESET_FULL: u8 = 1 << 3;

/// The sleep type of S5, as the DSDT's `\_S5` object must name it.
pub const SLEEP_TYPE_S5: u8 = 5;

/// A guest's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerRequest {
    /// Off, for good.
    PowerOff,
    /// Start again.
    Reset,
}

/// The registers, each one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerRegister {
    /// [`port::SLEEP_CONTROL`].
    SleepControl,
    /// The port after [`port::SLEEP_CONTROL`].
    SleepStatus,
    /// [`port::RESET`].
    Reset,
}

impl PowerRegister {
    /// The register behind a port.
    pub const fn at_port(port: u16) -> Option<Self> {
        const SLEEP_STATUS: u16 = port::SLEEP_CONTROL + 1;
        match port {
            port::SLEEP_CONTROL => Some(Self::SleepControl),
            SLEEP_STATUS => Some(Self::SleepStatus),
            port::RESET => Some(Self::Reset),
            _ => None,
        }
    }
}

/// Everything about the device that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerState {
    /// Sleep control as it reads: the sleep type in bits 2–4.
    pub sleep_control: u8,
    /// Reset control as it reads: bits 1 and 3.
    pub reset_control: u8,
}

/// The power and reset registers of a guest's machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Power {
    state: PowerState,
}

impl Default for Power {
    fn default() -> Self {
        Self::new()
    }
}

impl Power {
    /// The registers after a reset.
    pub const fn new() -> Self {
        Self { state: PowerState { sleep_control: 0, reset_control: 0 } }
    }

    /// Reads a register. The wake status is never set: nothing here wakes up.
    pub const fn read(&self, register: PowerRegister) -> u8 {
        match register {
            PowerRegister::SleepControl => self.state.sleep_control,
            PowerRegister::SleepStatus => 0,
            PowerRegister::Reset => self.state.reset_control,
        }
    }

    /// Writes a register; returns the guest's request by it.
    pub fn write(&mut self, register: PowerRegister, value: u8) -> Option<PowerRequest> {
        match register {
            PowerRegister::SleepControl => self.write_sleep_control(value),
            PowerRegister::SleepStatus => None,
            PowerRegister::Reset => self.write_reset(value),
        }
    }

    fn write_sleep_control(&mut self, value: u8) -> Option<PowerRequest> {
        self.state.sleep_control = value & SLEEP_TYPE_MASK;
        let is_s5 = (value & SLEEP_TYPE_MASK) >> SLEEP_TYPE_SHIFT == SLEEP_TYPE_S5;
        (value & SLEEP_ENABLE != 0 && is_s5).then_some(PowerRequest::PowerOff)
    }

    fn write_reset(&mut self, value: u8) -> Option<PowerRequest> {
        self.state.reset_control = value & (RESET_SYSTEM | RESET_FULL);
        const WANTED: u8 = RESET_SYSTEM | RESET_NOW;
        (value & WANTED == WANTED).then_some(PowerRequest::Reset)
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> PowerState {
        self.state.clone()
    }

    /// The registers in a saved state.
    ///
    /// # Errors
    /// [`StateError`] if a bit is set that never reads as one.
    pub fn from_state(state: PowerState) -> Result<Self, StateError> {
        let refuse = |field| Err(StateError { field, reason: "a bit is set that always reads as zero" });
        if state.sleep_control & !SLEEP_TYPE_MASK != 0 {
            return refuse("power.sleep_control");
        }
        if state.reset_control & !(RESET_SYSTEM | RESET_FULL) != 0 {
            return refuse("power.reset_control");
        }
        Ok(Self { state })
    }
}

#[cfg(test)]
mod tests;
