// SPDX-License-Identifier: MIT OR Apache-2.0
//! A PCI function on the bus: its configuration space, and the device behind it.

use handover::Full;
use handover::state::DeviceKind;

use super::access::ConfigAccess;
use super::bar::{Window, Windows};
use super::function::Function;
use super::slot::Slot;
use crate::devices::StateError;
use crate::devices::device::{At, Context, Device, Tag};
use crate::devices::outputs::Outputs;

/// The device behind a function's registers. Each method gets the function, too, to interrupt by it or to change the
/// values that its registers read as.
pub trait Behind: Send {
    /// The kind of device, for its state in the hand-over.
    fn kind(&self) -> u32;

    /// Reads in the range of a base address register ([`At::range`] is its number). MSI-X has been answered.
    fn read(&mut self, at: At, function: &mut Function, context: &mut Context<'_>) -> u64 {
        let _ = (function, context);
        at.size.mask()
    }

    /// Writes in the range of a base address register.
    fn write(&mut self, at: At, value: u64, function: &mut Function, context: &mut Context<'_>) {
        let _ = (at, value, function, context);
    }

    /// The guest is about to read configuration registers from this one on.
    fn before_config_read(&mut self, register: u8, function: &mut Function, context: &mut Context<'_>) {
        let _ = (register, function, context);
    }

    /// The guest has written configuration registers from this one on: it may have moved ranges, or reset the function.
    fn after_config_write(&mut self, register: u8, function: &mut Function, context: &mut Context<'_>) {
        let _ = (register, function, context);
    }

    /// The guest has written a vector of the MSI-X table.
    fn after_vector_write(&mut self, vector: u16, function: &mut Function) {
        let _ = (vector, function);
    }

    /// Returns whether it answers. While it does not, its registers and ranges read as all ones and swallow writes, and
    /// it decodes nothing.
    fn is_present(&self) -> bool {
        true
    }

    /// Returns whether what it decodes changed otherwise than by a write to the header; once.
    fn take_moved(&mut self) -> bool {
        false
    }

    /// Returns whether memory that it decodes may be mapped in the guest's address space.
    fn maps_ranges(&self) -> bool {
        false
    }

    /// Unmaps each range that is mapped elsewhere than in these windows.
    fn unmap_others(&mut self, windows: &Windows) {
        let _ = windows;
    }

    /// Maps its ranges in these windows: no other function's and no memory is there.
    fn map(&mut self, windows: &Windows) {
        let _ = windows;
    }

    /// The pin of the I/O APIC to which its INTx line leads, if it has one.
    fn line(&self) -> Option<u8> {
        None
    }

    /// The guest has ended the level-triggered interrupt of its line.
    fn end_line(&mut self, function: &mut Function, outputs: &mut Outputs) {
        let _ = (function, outputs);
    }

    /// As [`Device::polls`].
    fn polls(&self) -> bool {
        false
    }

    /// As [`Device::poll`].
    fn poll(&mut self, function: &mut Function, context: &mut Context<'_>) {
        let _ = (function, context);
    }

    /// Puts the device into its state after power-on.
    fn reset(&mut self) {}

    /// The version of what [`save`](Self::save) writes.
    fn state_version(&self) -> u32 {
        1
    }

    /// The most bytes that [`save`](Self::save) writes.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Writes the device's own state; returns the bytes used.
    ///
    /// # Errors
    /// [`Full`] if there is no room.
    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let _ = into;
        Ok(0)
    }

    /// Goes on from a saved state.
    ///
    /// # Errors
    /// [`StateError`] if this device cannot be in it; then it has not changed.
    fn restore(&mut self, version: u32, from: &[u8]) -> Result<(), StateError> {
        let _ = version;
        if from.is_empty() {
            return Ok(());
        }
        Err(StateError { field: "pci.functions", reason: "there is nothing behind its registers" })
    }
}

/// Nothing but registers: the host bridge.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Behind for Nothing {
    fn kind(&self) -> u32 {
        DeviceKind::PlainFunction as u32
    }
}

/// A function whose configuration space can be accessed.
pub trait Configured: Device {
    /// Reads registers; what lies past the last one reads as all ones.
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
        if let Some(first) = access.first() {
            self.device.before_config_read(first, &mut self.function, context);
        }
        let is_present = self.device.is_present();
        let there = |register: Option<u8>| register.filter(|_| is_present);
        let byte = |register| there(register).map_or(0xff, |register| self.function.read(register));
        let bytes = access.registers().map(byte).enumerate();
        bytes.fold(0, |value, (index, byte)| value | u64::from(byte) << (8 * index))
    }

    fn write_config(&mut self, access: ConfigAccess, value: u64, context: &mut Context<'_>) {
        if !self.device.is_present() {
            return;
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
