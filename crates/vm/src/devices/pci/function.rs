// SPDX-License-Identifier: MIT OR Apache-2.0
//! One function's configuration registers (PCI Local Bus 3.0, section 6.1).

use crate::devices::StateError;

/// Bytes of a conventional function's configuration space.
pub const CONFIG_BYTES: usize = 256;

/// Offsets in the header that every function has.
mod header {
    pub const VENDOR: usize = 0x00;
    pub const DEVICE: usize = 0x02;
    pub const COMMAND: usize = 0x04;
    pub const CLASS: usize = 0x09;
}

/// Command register bits that a guest may set: I/O space, memory space, bus master.
const COMMAND_MASK: u8 = 0b111;
/// QEMU's generic PCI Express host bridge, which drivers know to need nothing.
const HOST_BRIDGE_VENDOR: u16 = 0x1b36;
const HOST_BRIDGE_DEVICE: u16 = 0x0008;
/// Base class bridge, subclass host, no programming interface.
const CLASS_HOST_BRIDGE: u32 = 0x06_0000;

/// A function's place on the bus: device in bits 3–7, function in bits 0–2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u8);

impl Slot {
    /// Device 0, function 0.
    pub const HOST_BRIDGE: Self = Self(0);
}

/// A function: its registers and which of their bits a guest can write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    config: [u8; CONFIG_BYTES],
    write_mask: [u8; CONFIG_BYTES],
}

impl Function {
    /// A function with an ordinary header (type 0) and no base addresses. `class` is base class, subclass and
    /// programming interface from the high byte down.
    pub fn new(vendor: u16, device: u16, class: u32) -> Self {
        let mut function = Self { config: [0; CONFIG_BYTES], write_mask: [0; CONFIG_BYTES] };
        function.place(header::VENDOR, &vendor.to_le_bytes());
        function.place(header::DEVICE, &device.to_le_bytes());
        function.place(header::CLASS, &class.to_le_bytes()[..3]);
        function.allow_writes(header::COMMAND, &[COMMAND_MASK]);
        function
    }

    /// The bridge between processors and bus 0.
    pub fn host_bridge() -> Self {
        Self::new(HOST_BRIDGE_VENDOR, HOST_BRIDGE_DEVICE, CLASS_HOST_BRIDGE)
    }

    /// Sets registers from `offset`; what would lie past the end is dropped.
    pub fn place(&mut self, offset: usize, bytes: &[u8]) {
        for (register, byte) in self.config.iter_mut().skip(offset).zip(bytes) {
            *register = *byte;
        }
    }

    /// Lets a guest write the bits set in `mask`, from `offset`.
    pub fn allow_writes(&mut self, offset: usize, mask: &[u8]) {
        for (register, byte) in self.write_mask.iter_mut().skip(offset).zip(mask) {
            *register = *byte;
        }
    }

    /// Reads a register byte.
    pub fn read(&self, register: u8) -> u8 {
        self.config[usize::from(register)]
    }

    /// Writes a register byte, as far as its bits can be written.
    pub fn write(&mut self, register: u8, value: u8) {
        let index = usize::from(register);
        let mask = self.write_mask[index];
        self.config[index] = (self.config[index] & !mask) | (value & mask);
    }

    /// All registers.
    pub fn config(&self) -> &[u8; CONFIG_BYTES] {
        &self.config
    }

    /// Whether saved registers are of this function: only bits differ that a guest can write.
    pub(super) fn check(&self, saved: &[u8; CONFIG_BYTES]) -> Result<(), StateError> {
        let is_of_another = (0..CONFIG_BYTES).any(|i| (self.config[i] ^ saved[i]) & !self.write_mask[i] != 0);
        if is_of_another {
            return Err(StateError { field: "pci.functions.config", reason: "differs where no guest can write" });
        }
        Ok(())
    }

    /// Takes over saved registers that have been checked.
    pub(super) fn restore(&mut self, saved: &[u8; CONFIG_BYTES]) {
        self.config = *saved;
    }
}
