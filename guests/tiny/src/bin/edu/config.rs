// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration space of a PCI function, by ports (PCI Local Bus 3.0, section 3.2.2.3.2) and by memory (PCI Express
//! Base 5.0, section 7.2.2).

use tiny::cpu;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;

/// Vendor and device identifier.
pub const IDENTITY: u16 = 0x00;
/// Command; the upper half is the status.
pub const COMMAND: u16 = 0x04;
/// The first base address register.
pub const BAR: u16 = 0x10;
/// The address of the first capability.
const CAPABILITIES: u16 = 0x34;
/// Status: there is a list of capabilities.
const HAS_CAPABILITIES: u32 = 1 << 20;
/// Capabilities that fit into the registers behind the header.
const MOST_CAPABILITIES: usize = 48;

/// Command: memory ranges are decoded.
pub const MEMORY: u32 = 1 << 1;
/// Command: the function may write and read memory.
pub const BUS_MASTER: u32 = 1 << 2;
/// Command: no INTx.
pub const NO_INTX: u32 = 1 << 10;

/// A function, by its bus and by slot and function number in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its bus.
    pub bus: u8,
    /// Slot, upper 5 bits, and function.
    pub slot: u8,
}

impl Function {
    /// Returns the first function of a bus with this device and vendor identifier.
    pub fn find(bus: u8, identity: u32) -> Option<Self> {
        (0..=u8::MAX).map(|slot| Self { bus, slot }).find(|function| function.read(IDENTITY) == identity)
    }

    /// Returns the next function of the bus with this device and vendor identifier.
    pub fn next(self, identity: u32) -> Option<Self> {
        let slots = self.slot.checked_add(1)?..=u8::MAX;
        slots.map(|slot| Self { slot, ..self }).find(|function| function.read(IDENTITY) == identity)
    }

    /// Reads a register.
    pub fn read(self, register: u16) -> u32 {
        self.select(register);
        cpu::inl(DATA)
    }

    /// Writes a register.
    pub fn write(self, register: u16, value: u32) {
        self.select(register);
        cpu::outl(DATA, value);
    }

    /// Writes so many bytes of a register, as far as they are in one double word: 1, 2 or 4.
    pub fn write_narrow(self, register: u16, bytes: u16, value: u32) {
        self.select(register);
        let port = DATA + (register & 3) / bytes * bytes;
        match bytes {
            1 => cpu::outb(port, value as u8),
            2 => cpu::outw(port, value as u16),
            _ => cpu::outl(port, value),
        }
    }

    fn select(self, register: u16) {
        let place = u32::from(self.bus) << 16 | u32::from(self.slot) << 8;
        cpu::outl(ADDRESS, ENABLE | place | u32::from(register & 0xfc));
    }

    /// Changes the command register's lower half. Zeros do not clear the status bits.
    pub fn change_command(self, clear: u32, set: u32) {
        let command = self.read(COMMAND) & 0xffff;
        self.write(COMMAND, command & !clear | set);
    }

    /// The address of a register in the memory of the enhanced mechanism, which begins with bus 0.
    pub fn enhanced(self, ecam: u64, register: u16) -> u64 {
        ecam + (u64::from(self.bus) << 20 | u64::from(self.slot) << 12 | u64::from(register))
    }

    /// Returns the register at which a capability is.
    pub fn capability(self, wanted: u8) -> Option<u16> {
        self.capabilities().find(|&(_, id)| id == wanted).map(|(register, _)| register)
    }

    /// Registers and identifiers of all capabilities. A list that loops is cut off.
    pub fn capabilities(self) -> impl Iterator<Item = (u16, u8)> {
        let has_list = self.read(COMMAND) & HAS_CAPABILITIES != 0;
        let mut next = if has_list { self.read(CAPABILITIES) as u8 & !3 } else { 0 };
        core::iter::from_fn(move || {
            let register = u16::from(next);
            if register < 0x40 {
                return None;
            }
            let [id, following, ..] = self.read(register).to_le_bytes();
            next = following & !3;
            Some((register, id))
        })
        .take(MOST_CAPABILITIES)
    }
}
