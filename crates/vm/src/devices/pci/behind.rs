// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device behind a PCI function's registers.

use handover::Full;
use handover::state::DeviceKind;

use super::bar::Windows;
use super::function::Function;
use crate::devices::StateError;
use crate::devices::device::{At, Context};
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

    /// Reads the four bytes at an offset in extended configuration space.
    fn read_extended(&self, offset: u16) -> u32 {
        let _ = offset;
        u32::MAX
    }

    /// The guest writes bytes of extended configuration space.
    fn write_extended(&mut self, offset: u16, bytes: &[u8]) {
        let _ = (offset, bytes);
    }

    /// Returns how many virtual functions it has: functions 1, 2 and so on of its device.
    fn virtual_functions(&self) -> u8 {
        0
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

    /// Returns whether a range has changed otherwise than by a write to the header; once.
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

    /// The version of the state that [`save`](Self::save) writes.
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
