// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PCI function on the bus: its configuration space, and the device behind it.

use handover::Full;

use super::access::ConfigAccess;
use super::bar::{Window, Windows};
use super::behind::Behind;
use super::function::Function;
use super::slot::Slot;
use crate::devices::StateError;
use crate::devices::device::{At, Context, Device, Tag};
use crate::devices::outputs::Outputs;

/// A function with an accessible configuration space.
pub trait Configured: Device {
    /// Reads registers; bytes past the last one read as all ones.
    fn read_config(&mut self, access: ConfigAccess, context: &mut Context<'_>) -> u64;

    /// Writes registers.
    fn write_config(&mut self, access: ConfigAccess, value: u64, context: &mut Context<'_>);

    /// Returns where a base address register decodes.
    fn window(&self, bar: usize) -> Option<Window>;

    /// As [`Behind::take_moved`].
    fn take_moved(&mut self) -> bool;

    /// As [`Behind::maps_ranges`].
    fn maps_ranges(&self) -> bool;

    /// As [`Behind::unmap_others`].
    fn unmap_others(&mut self, windows: &Windows);

    /// As [`Behind::map`].
    fn map(&mut self, windows: &Windows);
}

/// A function in its slot.
#[derive(Debug)]
pub struct Endpoint<D> {
    slot: Slot,
    function: Function,
    device: D,
}

impl<D: Behind> Endpoint<D> {
    /// A function with a device behind it.
    pub const fn new(slot: Slot, function: Function, device: D) -> Self {
        Self { slot, function, device }
    }

    /// The slot.
    pub const fn slot(&self) -> Slot {
        self.slot
    }

    /// The function and its device.
    pub const fn parts(&mut self) -> (&mut Function, &mut D) {
        (&mut self.function, &mut self.device)
    }
}

/// Registers of a virtual function that are not zero: what it is follows from the physical one, whose vendor and device
/// it does not repeat (PCI Express Base 5.0, section 9.3.4.1).
const VIRTUAL_IDENTITY: u8 = 0x00;
const VIRTUAL_CLASS: u8 = 0x08;

impl<D: Behind> Endpoint<D> {
    /// Reads registers of a virtual function, which is there without ranges and capabilities.
    fn read_virtual(&self, access: ConfigAccess) -> u64 {
        if access.slot.function() > self.device.virtual_functions() {
            return access.size.mask();
        }
        let byte = |register: Option<u8>| match register {
            None | Some(VIRTUAL_IDENTITY..=3) => 0xff,
            Some(register @ VIRTUAL_CLASS..=0xb) => self.function.read(register),
            Some(_) => 0,
        };
        gathered(access.registers().map(byte))
    }
}

/// A value of bytes, the lowest one first.
fn gathered(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.enumerate().fold(0, |value, (index, byte)| value | u64::from(byte) << (8 * index))
}

impl<D: Behind> Device for Endpoint<D> {
    fn tag(&self) -> Tag {
        Tag { kind: self.device.kind(), instance: self.slot.0.into() }
    }

    fn read(&mut self, at: At, context: &mut Context<'_>) -> u64 {
        match self.function.read_msix(at) {
            _ if !self.device.is_present() => at.size.mask(),
            Some(value) => value,
            None => self.device.read(at, &mut self.function, context),
        }
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        if !self.device.is_present() {
            return;
        }
        if !self.function.write_msix(at, value, context.outputs) {
            self.device.write(at, value, &mut self.function, context);
        } else if let Some(vector) = self.function.vector_at(at) {
            self.device.after_vector_write(vector, &mut self.function);
        }
    }

    fn line(&self) -> Option<u8> {
        self.device.line()
    }

    fn end_line(&mut self, outputs: &mut Outputs) {
        self.device.end_line(&mut self.function, outputs);
    }

    fn polls(&self) -> bool {
        self.device.polls()
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        self.device.poll(&mut self.function, context);
    }

    fn raise_pending(&mut self, outputs: &mut Outputs) {
        self.function.send_pending(outputs);
    }

    fn reset(&mut self) {
        self.function.reset();
        self.device.reset();
    }

    fn state_version(&self) -> u32 {
        self.device.state_version()
    }

    fn state_bytes(&self) -> usize {
        self.function.saved_bytes() + self.device.state_bytes()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let used = self.function.save(self.slot, into)?;
        Ok(used + self.device.save(into.get_mut(used..).ok_or(Full)?)?)
    }

    fn restore(&mut self, version: u32, from: &[u8]) -> Result<(), StateError> {
        let (function, rest) = self.function.check(self.slot, from)?;
        self.device.restore(version, rest)?;
        self.function.restore(function);
        Ok(())
    }
}

impl<D: Behind> Configured for Endpoint<D> {
    fn read_config(&mut self, access: ConfigAccess, context: &mut Context<'_>) -> u64 {
        if !self.device.is_present() {
            return access.size.mask();
        }
        if access.slot != self.slot {
            return self.read_virtual(access);
        }
        if let Some(offset) = access.extended() {
            let byte = |at: u16| self.device.read_extended(at).to_le_bytes()[usize::from(at % 4)];
            return gathered((offset..).take(access.size.bytes()).map(byte));
        }
        if let Some(first) = access.first() {
            self.device.before_config_read(first, &mut self.function, context);
        }
        let byte = |register: Option<u8>| register.map_or(0xff, |register| self.function.read(register));
        gathered(access.registers().map(byte))
    }

    fn write_config(&mut self, access: ConfigAccess, value: u64, context: &mut Context<'_>) {
        if !self.device.is_present() || access.slot != self.slot {
            return;
        }
        if let Some(offset) = access.extended() {
            return self.device.write_extended(offset, &value.to_le_bytes()[..access.size.bytes()]);
        }
        for (register, byte) in access.registers().zip(value.to_le_bytes()) {
            if let Some(register) = register {
                self.function.write(register, byte);
            }
        }
        if let Some(first) = access.first() {
            self.function.send_pending(context.outputs);
            self.device.after_config_write(first, &mut self.function, context);
        }
    }

    fn window(&self, bar: usize) -> Option<Window> {
        self.function.window(bar).filter(|_| self.device.is_present())
    }

    fn take_moved(&mut self) -> bool {
        self.device.take_moved()
    }

    fn maps_ranges(&self) -> bool {
        self.device.maps_ranges()
    }

    fn unmap_others(&mut self, windows: &Windows) {
        self.device.unmap_others(windows);
    }

    fn map(&mut self, windows: &Windows) {
        self.device.map(windows);
    }
}
