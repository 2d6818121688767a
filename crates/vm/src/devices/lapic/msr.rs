// SPDX-License-Identifier: MIT OR Apache-2.0
//! x2APIC mode: registers are MSRs from 0x800, 64 bits wide (Intel SDM vol. 3, section 11.12.1).

use super::access::writable_bits;
use super::local_vector::LocalEntry;
use super::registers::*;
use super::{Action, Lapic, MSR_X2APIC_FIRST, Mode};
use crate::devices::{GeneralProtection, GuestTsc};

impl Lapic {
    /// Reads an x2APIC register.
    ///
    /// # Errors
    /// #GP outside x2APIC mode, and for registers that do not exist or cannot be read.
    pub fn read_msr(&self, msr: u32, now: GuestTsc) -> Result<u64, GeneralProtection> {
        if self.mode() != Mode::X2Apic {
            return Err(GeneralProtection);
        }
        match msr.wrapping_sub(MSR_X2APIC_FIRST) {
            ID => Ok(self.id().into()),
            INTERRUPT_COMMAND => Ok(self.state.interrupt_command),
            register => self.read_register(register, now).map(u64::from).ok_or(GeneralProtection),
        }
    }

    /// Writes an x2APIC register.
    ///
    /// # Errors
    /// #GP outside x2APIC mode, for registers that do not exist or cannot be written, and for reserved bits.
    #[inline]
    pub fn write_msr(&mut self, msr: u32, value: u64, now: GuestTsc) -> Result<Action, GeneralProtection> {
        if !self.is_x2apic() {
            return Err(GeneralProtection);
        }
        match msr.wrapping_sub(MSR_X2APIC_FIRST) {
            END_OF_INTERRUPT if value == 0 => Ok(self.end_of_interrupt()),
            SELF_IPI => u8::try_from(value).map(|vector| self.send_to_self(vector)).map_err(|_| GeneralProtection),
            INTERRUPT_COMMAND => self.write_command(value),
            register => self.write_x2apic(register, value, now),
        }
    }

    fn write_x2apic(&mut self, register: u32, value: u64, now: GuestTsc) -> Result<Action, GeneralProtection> {
        let writable = writable_bits(register).ok_or(GeneralProtection)?;
        let allowed = match register {
            // Written with zero only; in memory with anything.
            ERROR_STATUS => 0,
            LOCAL_VECTORS..=LOCAL_VECTORS_LAST => writable | LocalEntry::IGNORED,
            _ => writable,
        };
        if value & !u64::from(allowed) != 0 {
            return Err(GeneralProtection);
        }
        Ok(self.write_register(register, value as u32 & writable, now))
    }

    fn write_command(&mut self, value: u64) -> Result<Action, GeneralProtection> {
        let low = value as u32;
        if low & !(InterruptCommand::LOW_MASK | InterruptCommand::LOW_IGNORED) != 0 {
            return Err(GeneralProtection);
        }
        self.state.interrupt_command = value & !u64::from(InterruptCommand::LOW_IGNORED);
        Ok(self.send())
    }
}
