// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to a UART's registers.

use crate::register::Register;

/// The eight ports of one UART, and a clock. On the machine these are instructions, in tests and in `sim` a model.
pub trait Hardware {
    /// Reads a register.
    fn read(&mut self, register: Register) -> u8;

    /// Writes a register.
    fn write(&mut self, register: Register, value: u8);

    /// Writes `bytes` to one register in their order. Where one instruction can do that (`rep outsb`), a hypervisor
    /// below us leaves its guest once for all of them.
    fn write_burst(&mut self, register: Register, bytes: &[u8]) {
        for &byte in bytes {
            self.write(register, byte);
        }
    }

    /// Reads one register as often as `into` has room. Where one instruction can do that (`rep insb`), likewise.
    fn read_burst(&mut self, register: Register, into: &mut [u8]) {
        into.fill_with(|| self.read(register));
    }

    /// Nanoseconds since some moment, never backwards; `None` while there is no clock yet.
    fn now_ns(&mut self) -> Option<u64>;

    /// Pauses the CPU for a moment, in a wait for the UART.
    fn pause(&mut self);
}
