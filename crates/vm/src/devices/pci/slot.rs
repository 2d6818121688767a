// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots of PCI functions.

/// A function's place on the bus: device in bits 3–7, function in bits 0–2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u8);

impl Slot {
    /// Device 0, function 0.
    pub const HOST_BRIDGE: Self = Self(0);

    /// Function 0 of a device.
    pub const fn of_device(device: u8) -> Self {
        Self(device << 3)
    }

    /// The function's number in its device.
    pub const fn function(self) -> u8 {
        self.0 & 7
    }

    /// Function 0 of the same device.
    pub const fn first(self) -> Self {
        Self(self.0 & !7)
    }

    /// The device's number.
    pub const fn device(self) -> u8 {
        self.0 >> 3
    }
}
