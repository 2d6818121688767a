// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots of PCI functions.

/// A function's place on the bus: device in bits 3–7, function in bits 0–2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u8);

impl Slot {
    /// Device 0, function 0.
    pub const HOST_BRIDGE: Self = Self(0);
}
