// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts of a function, as a unit remaps them.

/// An interrupt's destination: fixed delivery to one CPU, edge-triggered unless it comes from an I/O APIC's level
/// input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The vector at the CPU, from 16 up.
    pub vector: u8,
    /// The CPU's APIC identifier. Above 254 the unit must be in x2APIC mode.
    pub destination: u32,
    /// Level-triggered.
    pub is_level: bool,
}

/// The message that a function writes to send an interrupt (MSI, MSI-X): in a format that the unit remaps, so that it
/// names the entry, not the vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The address.
    pub address: u64,
    /// The data.
    pub data: u32,
}
