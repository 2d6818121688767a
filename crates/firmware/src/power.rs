// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power-off and reset of the machine (ACPI 6.5, sections 4.8.3, 4.8.3.6 and 4.8.3.7).
//!
//! Only the registers' order and values are decided here; the caller reaches them through [`Machine`]. Nothing
//! allocates, and every wait has a limit: this also runs when the host has failed.

use crate::{Location, ResetRegister, SmiCommand, Tables};

/// PM1 control (table 4.16): the registers are the operating system's, not the firmware's.
const SCI_ENABLE: u32 = 1 << 0;
/// PM1 control, bits 12 to 10.
const SLEEP_TYPE_SHIFT: u32 = 10;
const SLEEP_ENABLE: u32 = 1 << 13;
const SLEEP_TYPE: u32 = 7 << SLEEP_TYPE_SHIFT;
/// Sleep control (table 4.24), bits 4 to 2.
const REDUCED_TYPE_SHIFT: u32 = 2;
const REDUCED_ENABLE: u32 = 1 << 5;
const REDUCED_TYPE: u32 = 7 << REDUCED_TYPE_SHIFT;
/// Sleep status (table 4.25): written as one, it is cleared.
const WAKE_STATUS: u32 = 1 << 7;
/// Longest time in ms for firmware to hand the registers over.
const ENABLE_LIMIT_MS: u32 = 3000;
/// Time in ms for a machine to react before the next way is tried.
const REACTION_MS: u32 = 100;
/// The reset control register that PCs have had since the PIIX: a system reset, then the edge that carries it out.
const RESET_CONTROL: u16 = 0xcf9;
const RESET_CONTROL_VALUES: [u32; 2] = [0x0a, 0x0e];
/// The keyboard controller: status and command port, "input buffer full", and the command that pulses the reset line.
const KEYBOARD: u16 = 0x64;
const KEYBOARD_IS_BUSY: u32 = 1 << 1;
const PULSE_RESET: u32 = 0xfe;
const KEYBOARD_LIMIT_MS: u32 = 20;

/// The machine's registers, by the width of an access in bytes.
pub trait Machine {
    /// Reads a register.
    fn read(&mut self, at: Location, bytes: u8) -> u32;
    /// Writes a register.
    fn write(&mut self, at: Location, bytes: u8, value: u32);
    /// Waits about a millisecond.
    fn wait(&mut self);
}

/// The tables' power settings: a copy, for when nothing may be locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Power {
    enable: Option<SmiCommand>,
    /// PM1a and PM1b control, each with its SLP_TYP.
    controls: [Option<(u16, u8)>; 2],
    /// Sleep control, with its SLP_TYP, and sleep status.
    sleep: Option<(Location, u8)>,
    sleep_status: Option<Location>,
    reset: Option<ResetRegister>,
}

impl Power {
    /// Returns the settings that the tables state.
    pub fn new(tables: &Tables) -> Self {
        let (a, b) = (tables.sleep_s5_type, tables.sleep_s5_type_b);
        Self {
            enable: tables.acpi_enable,
            // Without PM1a there is no PM1b. Firmware that gives one value means it for both.
            controls: [
                tables.pm1a_control_port.zip(a),
                tables.pm1a_control_port.and(tables.pm1b_control_port).zip(b.or(a)),
            ],
            sleep: tables.sleep_control.zip(a),
            sleep_status: tables.sleep_status,
            reset: tables.reset_register,
        }
    }

    /// Physical addresses of registers in memory, which must be mapped before they are used.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        let sleep = self.sleep.map(|(at, _)| at);
        let all = [sleep, self.sleep_status, self.reset.map(|reset| reset.location)];
        all.into_iter().flatten().filter_map(|at| match at {
            Location::Memory(address) => Some(address),
            _ => None,
        })
    }

    /// Powers the machine off. Returns where the tables do not state how, or the machine does not follow.
    pub fn power_off(&self, machine: &mut impl Machine) {
        self.enable_registers(machine);
        // Each register gets its type before any of them is enabled: with two, both must agree (section 4.8.3.2.1).
        for enable in [0, SLEEP_ENABLE] {
            for (port, kind) in self.controls.into_iter().flatten() {
                let kept = machine.read(Location::Port(port), 2) & 0xffff & !(SLEEP_TYPE | SLEEP_ENABLE);
                machine.write(Location::Port(port), 2, kept | u32::from(kind) << SLEEP_TYPE_SHIFT | enable);
            }
        }
        if let Some((control, kind)) = self.sleep {
            self.sleep_status.into_iter().for_each(|status| machine.write(status, 1, WAKE_STATUS));
            let kept = machine.read(control, 1) & 0xff & !(REDUCED_TYPE | REDUCED_ENABLE);
            machine.write(control, 1, kept | u32::from(kind) << REDUCED_TYPE_SHIFT | REDUCED_ENABLE);
        }
        wait(machine, REACTION_MS, |_| false);
    }

    /// Firmware that has the PM1 registers hands them over: without that a write of SLP_TYP may do nothing.
    fn enable_registers(&self, machine: &mut impl Machine) {
        let (Some(command), Some((control, _))) = (self.enable, self.controls[0]) else { return };
        let is_enabled = |machine: &mut _| Machine::read(machine, Location::Port(control), 2) & SCI_ENABLE != 0;
        if !is_enabled(machine) {
            machine.write(Location::Port(command.port), 1, command.value.into());
            wait(machine, ENABLE_LIMIT_MS, is_enabled);
        }
    }

    /// Resets the machine: by the tables' register, the PIIX's, the keyboard controller. Returns where none does.
    pub fn reset(&self, machine: &mut impl Machine) {
        if let Some(reset) = self.reset {
            machine.write(reset.location, 1, reset.value.into());
            wait(machine, REACTION_MS, |_| false);
        }
        for value in RESET_CONTROL_VALUES {
            machine.write(Location::Port(RESET_CONTROL), 1, value);
        }
        wait(machine, REACTION_MS, |_| false);
        let is_ready = |machine: &mut _| Machine::read(machine, Location::Port(KEYBOARD), 1) & KEYBOARD_IS_BUSY == 0;
        wait(machine, KEYBOARD_LIMIT_MS, is_ready);
        machine.write(Location::Port(KEYBOARD), 1, PULSE_RESET);
        wait(machine, REACTION_MS, |_| false);
    }
}

/// Waits until a condition holds, at most for a limit.
fn wait<M: Machine>(machine: &mut M, limit_ms: u32, is_so: impl Fn(&mut M) -> bool) {
    for _ in 0..limit_ms {
        if is_so(machine) {
            return;
        }
        machine.wait();
    }
}

#[cfg(test)]
#[path = "power_tests.rs"]
mod tests;
