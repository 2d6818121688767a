// SPDX-License-Identifier: MIT OR Apache-2.0
//! xAPIC mode: registers in memory, 32 bits wide, one in every 16 bytes (Intel SDM vol. 3, section 11.4.1).

use super::access::writable_bits;
use super::registers::*;
use super::{Action, Lapic, Mode};
use crate::devices::GuestTsc;

impl Lapic {
    /// Reads the register at `offset` in the register page. Outside xAPIC mode there is no page: all ones.
    pub fn read_mmio(&mut self, offset: u16, now: GuestTsc) -> u32 {
        if self.mode() != Mode::XApic {
            return u32::MAX;
        }
        let value = match register_at(offset) {
            Some(ID) => Some(self.id() << 24),
            Some(INTERRUPT_COMMAND) => Some(self.state.interrupt_command as u32),
            Some(INTERRUPT_COMMAND_HIGH) => Some((self.state.interrupt_command >> 32) as u32),
            Some(DESTINATION_FORMAT) => Some(self.state.destination_format),
            Some(END_OF_INTERRUPT) => Some(0),
            Some(register) => self.read_register(register, now),
            None => None,
        };
        value.unwrap_or_else(|| {
            self.record_error(error::ILLEGAL_REGISTER);
            0
        })
    }

    /// Writes the register at `offset` in the register page. Outside xAPIC mode there is no page: nothing happens.
    pub fn write_mmio(&mut self, offset: u16, value: u32, now: GuestTsc) -> Action {
        if self.mode() != Mode::XApic {
            return Action::None;
        }
        let Some(register) = register_at(offset) else {
            self.record_error(error::ILLEGAL_REGISTER);
            return Action::None;
        };
        match register {
            END_OF_INTERRUPT => self.end_of_interrupt(),
            INTERRUPT_COMMAND => self.write_command_low(value),
            INTERRUPT_COMMAND_HIGH => self.write_command_high(value),
            LOGICAL_DESTINATION => self.write_logical_destination(value),
            DESTINATION_FORMAT => self.write_destination_format(value),
            _ => match writable_bits(register) {
                Some(writable) => self.write_register(register, value & writable, now),
                None => self.refuse_mmio_write(register, now),
            },
        }
    }

    fn write_command_low(&mut self, value: u32) -> Action {
        let high = self.state.interrupt_command >> 32 << 32;
        self.state.interrupt_command = high | u64::from(value & InterruptCommand::LOW_MASK);
        self.send()
    }

    fn write_command_high(&mut self, value: u32) -> Action {
        let low = u64::from(self.state.interrupt_command as u32);
        self.state.interrupt_command = low | u64::from(value & InterruptCommand::XAPIC_HIGH_MASK) << 32;
        Action::None
    }

    fn write_logical_destination(&mut self, value: u32) -> Action {
        self.state.logical_destination = value & LOGICAL_DESTINATION_MASK;
        Action::None
    }

    fn write_destination_format(&mut self, value: u32) -> Action {
        self.state.destination_format = value | !DESTINATION_FORMAT_MASK;
        Action::None
    }

    /// Writes to read-only registers do nothing; writes to registers that do not exist are an error.
    fn refuse_mmio_write(&mut self, register: u32, now: GuestTsc) -> Action {
        if register != ID && self.read_register(register, now).is_none() {
            self.record_error(error::ILLEGAL_REGISTER);
        }
        Action::None
    }
}

/// The register at an offset in the page, if it is one's first byte.
const fn register_at(offset: u16) -> Option<u32> {
    if offset.is_multiple_of(16) { Some(offset as u32 / 16) } else { None }
}
