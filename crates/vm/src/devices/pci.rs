// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI configuration space with one host bridge.
//!
//! One bus, reached by both of a PC's ways: configuration mechanism 1 (PCI Local Bus 3.0, section 3.2.2.3.2: an address
//! port and four data ports) and the enhanced mechanism (PCI Express 5.0, section 7.2.2: memory). A function is 256
//! bytes of registers and a mask of the bits that can be written; what is not there reads as all ones. Every access is
//! taken byte by byte, so none can reach past a function, whatever its size and alignment.

use alloc::vec::Vec;

use super::StateError;
use crate::addr::AccessSize;

mod function;
mod state;

pub use function::{CONFIG_BYTES, Function, Slot};
pub use state::{FunctionState, PciState};

/// The address register's enable bit; without it the data ports are nobody's.
const ADDRESS_ENABLE: u32 = 1 << 31;
/// Bits of the address register that can be written: enable, bus, slot and register.
const ADDRESS_MASK: u32 = ADDRESS_ENABLE | 0x00ff_fffc;
/// Offset of the data ports from [`crate::layout::port::PCI_ADDRESS`].
const DATA_OFFSET: u8 = 4;
/// The PCI ports end here.
const PORTS: u8 = 8;

/// The bus with its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciBus {
    address: u32,
    functions: Vec<(Slot, Function)>,
}

impl Default for PciBus {
    fn default() -> Self {
        Self::new()
    }
}

impl PciBus {
    /// A bus with nothing but the host bridge at 00:00.0.
    pub fn new() -> Self {
        Self { address: 0, functions: Vec::from([(Slot::HOST_BRIDGE, Function::host_bridge())]) }
    }

    /// Puts a function into a slot, in place of what is there.
    pub fn insert(&mut self, slot: Slot, function: Function) {
        self.functions.retain(|(taken, _)| *taken != slot);
        self.functions.push((slot, function));
    }

    /// The function in a slot.
    pub fn function(&self, slot: Slot) -> Option<&Function> {
        self.functions.iter().find(|(taken, _)| *taken == slot).map(|(_, function)| function)
    }

    /// Reads `size` bytes at `offset` (0–7) from the address port. Narrow reads of the address port are ordinary ports
    /// that nobody answers.
    pub fn read_port(&self, offset: u8, size: AccessSize) -> u32 {
        match (offset, size) {
            (0, AccessSize::Dword) => self.address,
            (DATA_OFFSET..PORTS, _) => self.read(self.data_target(offset), size) as u32,
            _ => size.mask() as u32,
        }
    }

    /// Writes `size` bytes at `offset` (0–7) from the address port. Narrow writes of the address port are ignored here:
    /// one of its bytes is the reset register.
    pub fn write_port(&mut self, offset: u8, size: AccessSize, value: u32) {
        match (offset, size) {
            (0, AccessSize::Dword) => self.address = value & ADDRESS_MASK,
            (DATA_OFFSET..PORTS, _) => self.write(self.data_target(offset), size, u64::from(value)),
            _ => {}
        }
    }

    /// Reads `size` bytes at `offset` from the enhanced configuration window.
    pub fn read_enhanced(&self, offset: u64, size: AccessSize) -> u64 {
        self.read(Self::enhanced_target(offset), size)
    }

    /// Writes `size` bytes at `offset` from the enhanced configuration window.
    pub fn write_enhanced(&mut self, offset: u64, size: AccessSize, value: u64) {
        self.write(Self::enhanced_target(offset), size, value);
    }

    /// What the next image needs to go on.
    pub fn state(&self) -> PciState {
        let functions = self.functions.iter().map(|(slot, function)| FunctionState::of(*slot, function)).collect();
        PciState { address: self.address, functions }
    }

    /// The address register of configuration mechanism 1.
    pub(crate) const fn address(&self) -> u32 {
        self.address
    }

    /// Every function with its registers.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (Slot, &[u8; CONFIG_BYTES])> {
        self.functions.iter().map(|(slot, function)| (*slot, function.config()))
    }

    /// A bus with the host bridge alone, in a saved state.
    ///
    /// # Errors
    /// As [`restore`](Self::restore).
    pub fn from_state(state: PciState) -> Result<Self, StateError> {
        Self::new().restore(state)
    }

    /// This bus, its functions in the machine's slots already, in a saved state.
    ///
    /// # Errors
    /// [`StateError`] if the state is of other functions, or differs from theirs in a bit that cannot be written.
    pub fn restore(mut self, state: PciState) -> Result<Self, StateError> {
        let functions = state.functions.iter().map(|saved| (u32::from(saved.slot), &saved.config));
        self.restore_each(state.address, functions)?;
        Ok(self)
    }

    /// The same in place: by its slots' numbers, each function's registers. After an error nothing has changed.
    pub(crate) fn restore_each<'a>(
        &mut self,
        address: u32,
        saved: impl ExactSizeIterator<Item = (u32, &'a [u8; CONFIG_BYTES])> + Clone,
    ) -> Result<(), StateError> {
        let refuse = |field, reason| Err(StateError { field, reason });
        if address & !ADDRESS_MASK != 0 {
            return refuse("pci.address", "a bit is set that always reads as zero");
        }
        if saved.len() != self.functions.len() {
            return refuse("pci.functions", "not as many as this machine has");
        }
        for (slot, function) in &self.functions {
            let mut of_it = saved.clone().filter(|(number, _)| *number == u32::from(slot.0));
            match (of_it.next(), of_it.next()) {
                (Some((_, config)), None) => function.check(config)?,
                _ => return refuse("pci.functions", "not one for each slot of this machine"),
            }
        }
        for (slot, function) in &mut self.functions {
            let of_it = saved.clone().find(|(number, _)| *number == u32::from(slot.0));
            of_it.into_iter().for_each(|(_, config)| function.restore(config));
        }
        self.address = address;
        Ok(())
    }

    /// What the data port at `offset` reaches.
    fn data_target(&self, offset: u8) -> Option<Target> {
        let [register, slot, bus, _] = self.address.to_le_bytes();
        let is_reached = self.address & ADDRESS_ENABLE != 0 && bus == 0;
        let lane = offset - DATA_OFFSET;
        is_reached.then_some(Target {
            slot: Slot(slot),
            register: u16::from(register) + u16::from(lane),
            end: u16::from(register) + 4,
        })
    }

    fn enhanced_target(offset: u64) -> Option<Target> {
        let slot = Slot(u8::try_from(offset >> 12).ok()?);
        let register = (offset & 0xfff) as u16;
        Some(Target { slot, register, end: CONFIG_BYTES as u16 })
    }

    fn read(&self, target: Option<Target>, size: AccessSize) -> u64 {
        let found = target.and_then(|target| Some((target, self.function(target.slot)?)));
        let Some((target, function)) = found else { return size.mask() };
        let byte = |index| target.byte(index).map_or(0xff, |register| function.read(register));
        (0..size.bytes()).rev().fold(0, |value, index| value << 8 | u64::from(byte(index)))
    }

    fn write(&mut self, target: Option<Target>, size: AccessSize, value: u64) {
        let Some(target) = target else { return };
        let Some((_, function)) = self.functions.iter_mut().find(|(slot, _)| *slot == target.slot) else { return };
        for (index, byte) in value.to_le_bytes().into_iter().take(size.bytes()).enumerate() {
            if let Some(register) = target.byte(index) {
                function.write(register, byte);
            }
        }
    }
}

/// Registers of one slot, from the first that an access touches to the end of what it may touch.
#[derive(Clone, Copy)]
struct Target {
    slot: Slot,
    register: u16,
    end: u16,
}

impl Target {
    /// The register that an access's byte number `index` is for; `None` past the end.
    fn byte(self, index: usize) -> Option<u8> {
        let register = usize::from(self.register) + index;
        if register < usize::from(self.end) { u8::try_from(register).ok() } else { None }
    }
}

#[cfg(test)]
mod tests;
