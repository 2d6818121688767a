// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power button, by which the operator asks a guest to shut down.
//!
//! A hardware-reduced ACPI machine has a control method power button (ACPI 6.5, section 4.8.2.2.1.2). The guest's ACPI
//! tables describe it: a line of the I/O APIC, which the Generic Event Device handles, and a register of one byte. Its
//! bit 0 reads as one from when the button is pressed until the guest writes a one there. The line is asserted as long,
//! so that a press is not lost before the guest's driver is there.

mod on_bus;

use super::outputs::Outputs;
use crate::platform::layout::POWER_BUTTON_GSI;

/// The button has been pressed, and the guest has not seen that.
const PRESSED: u8 = 1 << 0;

/// The power button.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerButton {
    is_pressed: bool,
}

impl PowerButton {
    /// A button that has not been pressed.
    pub const fn new() -> Self {
        Self { is_pressed: false }
    }

    /// Presses it. A press that the guest has not seen yet, and this one, are one.
    pub fn press(&mut self, outputs: &mut Outputs) {
        self.is_pressed = true;
        self.set_line(outputs);
    }

    /// Returns whether the guest is still to see that it was pressed.
    pub const fn is_pressed(&self) -> bool {
        self.is_pressed
    }

    const fn read(&self) -> u8 {
        if self.is_pressed { PRESSED } else { 0 }
    }

    fn write(&mut self, value: u8, outputs: &mut Outputs) {
        self.is_pressed &= value & PRESSED == 0;
        self.set_line(outputs);
    }

    fn set_line(&self, outputs: &mut Outputs) {
        outputs.set_line(POWER_BUTTON_GSI, self.is_pressed);
    }
}

#[cfg(test)]
mod tests;
