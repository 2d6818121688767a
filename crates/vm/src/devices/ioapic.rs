// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O APIC: 24 inputs to interrupt messages.
//!
//! After Intel's 82093AA data sheet, with the end-of-interrupt register of later versions (Intel ICH data sheets).
//!
//! An edge-triggered pin sends a message when its line rises; a rise while the pin is masked is lost. A level-triggered
//! pin sends one while its line is asserted and then waits ("remote IRR") for the end of that interrupt; if the line is
//! still asserted then, it sends another. Lines are logical: polarity is stored, not applied.

mod on_bus;
mod registers;
mod state;

pub use registers::RedirectionEntry;
pub use state::IoapicState;

use super::{DeliveryMode, Destination, InterruptMessage, StateError};
use crate::platform::layout::IOAPIC_PINS;

/// Offsets of the memory-mapped registers, each 32 bits wide.
const INDEX_OFFSET: u16 = 0x00;
const DATA_OFFSET: u16 = 0x10;
const EOI_OFFSET: u16 = 0x40;

/// Indirect registers, by index.
const ID: u8 = 0x00;
const VERSION: u8 = 0x01;
const ARBITRATION_ID: u8 = 0x02;
const FIRST_ENTRY: u8 = 0x10;
const LAST_ENTRY: u8 = FIRST_ENTRY + 2 * IOAPIC_PINS as u8 - 1;

/// Version 0x20 (it has an end-of-interrupt register); the number of the last entry in bits 16–23.
const VERSION_VALUE: u32 = 0x20 | ((IOAPIC_PINS as u32 - 1) << 16);
const ID_SHIFT: u32 = 24;
const ID_MASK: u32 = 0xf << ID_SHIFT;

/// The I/O APIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ioapic {
    state: IoapicState,
}

impl Ioapic {
    /// An I/O APIC after reset: every pin masked. `id` is what the MADT calls it (its low four bits count).
    pub const fn new(id: u8) -> Self {
        Self {
            state: IoapicState {
                index: 0,
                id: id & 0xf,
                entries: [RedirectionEntry::RESET.into_bits(); IOAPIC_PINS],
                lines: 0,
            },
        }
    }

    /// Reads the 32-bit register at `offset` in the page. Offsets that are no register read as zero.
    #[inline]
    pub fn read(&self, offset: u16) -> u32 {
        match offset {
            INDEX_OFFSET => u32::from(self.state.index),
            DATA_OFFSET => self.read_indirect(),
            _ => 0,
        }
    }

    /// Reads the part of a register from `offset` in the page on.
    #[inline]
    pub fn read_part(&self, offset: u16) -> u64 {
        u64::from(self.read(offset & !3)) >> ((offset % 4) * 8)
    }

    /// Writes the 32-bit register at `offset` in the page; interrupts that this sets free go to `deliver`.
    pub fn write(&mut self, offset: u16, value: u32, deliver: &mut impl FnMut(InterruptMessage)) {
        match offset {
            INDEX_OFFSET => self.state.index = value as u8,
            DATA_OFFSET => self.write_indirect(value, deliver),
            EOI_OFFSET => self.end_of_interrupt(value as u8, deliver),
            _ => {}
        }
    }

    /// A device asserts or releases the line of `pin`. Returns the message to send for it. Pins that do not exist have
    /// no line.
    pub fn set_line(&mut self, pin: u8, level: bool) -> Option<InterruptMessage> {
        let pin = usize::from(pin);
        if pin >= IOAPIC_PINS {
            return None;
        }
        let was_asserted = self.is_asserted(pin);
        self.state.lines = self.state.lines & !(1 << pin) | u32::from(level) << pin;
        let entry = self.entry(pin);
        if entry.waits_for_end() {
            return self.deliver_level(pin);
        }
        let rises = level && !was_asserted;
        if rises && !entry.masked() { entry.message() } else { None }
    }

    /// A local APIC has ended the level-triggered interrupt `vector`. Lines that are still asserted interrupt again.
    pub fn end_of_interrupt(&mut self, vector: u8, deliver: &mut impl FnMut(InterruptMessage)) {
        for pin in 0..IOAPIC_PINS {
            let entry = self.entry(pin);
            if entry.remote_irr() && entry.vector() == vector {
                self.state.entries[pin] = entry.with_remote_irr(false).into_bits();
                self.deliver_level(pin).into_iter().for_each(&mut *deliver);
            }
        }
    }

    /// The pins, as bits, whose level-triggered interrupt with this vector has not ended.
    pub fn pins_in_service(&self, vector: u8) -> u32 {
        let waits = |pin: &usize| self.entry(*pin).remote_irr() && self.entry(*pin).vector() == vector;
        (0..IOAPIC_PINS).filter(waits).fold(0, |pins, pin| pins | 1 << pin)
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> IoapicState {
        self.state.clone()
    }

    /// The I/O APIC in a saved state.
    ///
    /// # Errors
    /// [`StateError`] if no I/O APIC can be in it.
    pub fn from_state(state: IoapicState) -> Result<Self, StateError> {
        state.validate()?;
        Ok(Self { state })
    }

    fn entry(&self, pin: usize) -> RedirectionEntry {
        RedirectionEntry::from_bits(self.state.entries[pin])
    }

    fn is_asserted(&self, pin: usize) -> bool {
        self.state.lines & 1 << pin != 0
    }

    /// The message of a level-triggered pin whose line is asserted and which waits for nothing.
    fn deliver_level(&mut self, pin: usize) -> Option<InterruptMessage> {
        let entry = self.entry(pin);
        if !entry.is_ready() || !self.is_asserted(pin) {
            return None;
        }
        self.state.entries[pin] = entry.with_remote_irr(true).into_bits();
        entry.message()
    }

    fn read_indirect(&self) -> u32 {
        match self.state.index {
            ID | ARBITRATION_ID => u32::from(self.state.id) << ID_SHIFT,
            VERSION => VERSION_VALUE,
            index @ FIRST_ENTRY..=LAST_ENTRY => {
                let entry = self.state.entries[usize::from(index - FIRST_ENTRY) / 2];
                if index % 2 == 0 { entry as u32 } else { (entry >> 32) as u32 }
            }
            _ => 0,
        }
    }

    fn write_indirect(&mut self, value: u32, deliver: &mut impl FnMut(InterruptMessage)) {
        match self.state.index {
            ID => self.state.id = ((value & ID_MASK) >> ID_SHIFT) as u8,
            index @ FIRST_ENTRY..=LAST_ENTRY => {
                let pin = usize::from(index - FIRST_ENTRY) / 2;
                self.state.entries[pin] = self.entry(pin).written(index % 2 != 0, value).into_bits();
                self.deliver_level(pin).into_iter().for_each(deliver);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
