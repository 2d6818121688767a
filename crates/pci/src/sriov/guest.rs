// SPDX-License-Identifier: MIT OR Apache-2.0
//! The SR-IOV capability that a guest sees of a physical function of its own (PCI Express Base 5.0, section 9.3.3).
//! Nothing of it is the hardware's: the host reads how many virtual functions the guest requests, and decides.
//!
//! The virtual functions are functions 1 to 7 of the device in which the guest has the physical one. They have no
//! ranges: on this bus no software uses them.

use super::{COUNTS, DEVICE, ID, PAGE_SIZES, PAGES_OF_4_KIB, PLACES};

/// The most virtual functions: those that a device has beside function 0.
pub const MOST: u8 = 7;
/// Capability version 1; the last one of the list.
const HEADER: u32 = 1 << 16 | ID as u32;
const CONTROL: u16 = 0x08;
const NUMBER: u16 = 0x10;
const SYSTEM_PAGE_SIZE: u16 = 0x20;
/// Control: the virtual functions are enabled, and decode memory.
const ENABLE: u16 = 1 << 0;
const MEMORY: u16 = 1 << 3;
const CONTROLS: u16 = ENABLE | MEMORY;
/// First VF Offset and VF Stride: function 1, and the next one.
const BEHIND_IT: u32 = 1 << 16 | 1;

/// The capability's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestCapability {
    total: u8,
    device: u16,
    control: u16,
    number: u16,
}

impl GuestCapability {
    /// Returns the capability as after power-on, with `total` approved virtual functions; `None` if that is impossible.
    pub fn new(total: u8, device: u16) -> Option<Self> {
        (1..=MOST).contains(&total).then_some(Self { total, device, control: 0, number: 0 })
    }

    /// Returns the registers with a saved control and number; `None` if no guest can have made them so.
    pub fn restored(self, control: u16, number: u16) -> Option<Self> {
        let is_possible = control & !CONTROLS == 0 && number <= u16::from(self.total);
        is_possible.then_some(Self { control, number, ..self })
    }

    /// Returns the device identifier of the virtual functions.
    pub fn device(&self) -> u16 {
        self.device
    }

    /// Returns SR-IOV Control and NumVFs, as they are saved.
    pub fn saved(&self) -> (u16, u16) {
        (self.control, self.number)
    }

    /// Returns how many virtual functions the guest requests: none while they are not enabled.
    pub fn wanted(&self) -> u8 {
        if self.control & ENABLE == 0 { 0 } else { self.number as u8 }
    }

    /// Resets it to the state after power-on.
    pub fn reset(&mut self) {
        (self.control, self.number) = (0, 0);
    }

    /// Reads the four bytes at an offset in extended configuration space, which begins with the capability.
    pub fn read(&self, offset: u16) -> u32 {
        let total = u32::from(self.total);
        match offset & !3 {
            0 => HEADER,
            CONTROL => self.control.into(),
            COUNTS => total << 16 | total,
            // The upper half, Function Dependency Link: its own function, 0.
            NUMBER => self.number.into(),
            PLACES => BEHIND_IT,
            DEVICE => u32::from(self.device) << 16,
            PAGE_SIZES | SYSTEM_PAGE_SIZE => PAGES_OF_4_KIB,
            _ => 0,
        }
    }

    /// Writes bytes from an offset on. A number above what is approved is ignored, as is each while they are enabled.
    pub fn write(&mut self, offset: u16, bytes: &[u8]) {
        let mut control = self.control.to_le_bytes();
        let mut number = self.number.to_le_bytes();
        for (index, &byte) in bytes.iter().enumerate() {
            match offset.saturating_add(index as u16) {
                at @ CONTROL..0x0a => control[usize::from(at - CONTROL)] = byte,
                at @ NUMBER..0x12 => number[usize::from(at - NUMBER)] = byte,
                _ => {}
            }
        }
        let number = u16::from_le_bytes(number);
        if self.control & ENABLE == 0 && number <= u16::from(self.total) {
            self.number = number;
        }
        self.control = u16::from_le_bytes(control) & CONTROLS;
    }
}

#[cfg(test)]
#[path = "guest_tests.rs"]
mod tests;
