// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices of a guest's machine.
//!
//! A device is a model of its chip: `read` and `write` by register, `state()` and a validating `from_state()` (a live
//! update carries the state to the next image), and a plain return value for what it wants of the rest of the machine.
//! Time is always handed in. [`device::Device`] puts it on the machine's [`bus`], which finds the device for a port or
//! an address; what comes of an access is collected in [`outputs`]. A device never holds a reference to another.

use core::fmt;

pub mod balloon;
pub mod blk;
pub mod bus;
pub mod cmos;
pub mod com1;
pub mod debug_exit;
pub mod device;
pub mod hot_plug;
pub mod ioapic;
pub mod lapic;
pub mod net;
pub mod outputs;
pub mod pci;
mod piece;
pub mod power;
pub mod power_button;
pub mod pvpanic;
pub mod serial;
pub mod virtio;
pub mod vsock;

/// A saved state that no device of this kind can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateError {
    /// The device and the field.
    pub field: &'static str,
    /// The reason.
    pub reason: &'static str,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "saved state refused: {}: {}", self.field, self.reason)
    }
}

/// A value or register that the architecture answers with #GP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneralProtection;

/// Ticks of the guest's time stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct GuestTsc(pub u64);

/// Delivery mode of an interrupt message (Intel SDM vol. 3, section 11.6.1; AMD APM vol. 2, section 16.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryMode {
    /// To the CPUs named, by vector.
    Fixed,
    /// To the one among them with the lowest priority.
    LowestPriority,
    /// System management interrupt: ignored, there is no SMM.
    Smi,
    /// Non-maskable interrupt.
    Nmi,
    /// INIT.
    Init,
    /// Start-up, with the page in the vector.
    Startup,
    /// As from an 8259: ignored, there is none.
    ExternalInterrupt,
}

impl DeliveryMode {
    /// The mode for its 3-bit encoding; `None` for the reserved one.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 7 {
            0 => Some(Self::Fixed),
            1 => Some(Self::LowestPriority),
            2 => Some(Self::Smi),
            4 => Some(Self::Nmi),
            5 => Some(Self::Init),
            6 => Some(Self::Startup),
            7 => Some(Self::ExternalInterrupt),
            _ => None,
        }
    }
}

/// The local APICs that a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The one with this identifier (all ones: every one).
    Physical(u32),
    /// The APICs with a matching logical destination register.
    Logical(u32),
    /// The sender.
    Itself,
    /// Every one.
    All,
    /// Every one but the sender.
    AllButSelf,
}

/// An interrupt on its way to local APICs: from the IOAPIC, an MSI or another local APIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptMessage {
    /// The receivers.
    pub destination: Destination,
    /// Delivery mode.
    pub mode: DeliveryMode,
    /// The vector (its meaning depends on the mode).
    pub vector: u8,
    /// Level-triggered: the EOI goes back to the IOAPIC.
    pub is_level: bool,
}
