// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries of the local vector table, and their registers.

use bitfield_struct::bitfield;

use super::registers::{LOCAL_VECTORS, LOCAL_VECTORS_LAST};

/// Number of local vectors.
pub const LOCAL_VECTOR_COUNT: usize = (LOCAL_VECTORS_LAST - LOCAL_VECTORS + 1) as usize;

/// The local vectors, in the order of their registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LocalVector {
    Timer,
    Thermal,
    Performance,
    Pin0,
    Pin1,
    Error,
}

impl LocalVector {
    /// All of them, by number.
    pub const ALL: [Self; LOCAL_VECTOR_COUNT] =
        [Self::Timer, Self::Thermal, Self::Performance, Self::Pin0, Self::Pin1, Self::Error];

    /// The one with this register number.
    pub const fn of_register(register: u32) -> Option<Self> {
        match register {
            LOCAL_VECTORS..=LOCAL_VECTORS_LAST => Some(Self::ALL[(register - LOCAL_VECTORS) as usize]),
            _ => None,
        }
    }

    /// Bits of its register that can be written.
    pub const fn writable_bits(self) -> u32 {
        match self {
            Self::Timer => 0x0007_00ff,
            Self::Thermal | Self::Performance => 0x0001_07ff,
            Self::Pin0 | Self::Pin1 => 0x0001_a7ff,
            Self::Error => 0x0001_00ff,
        }
    }
}

/// One entry.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LocalEntry {
    /// The vector.
    pub vector: u8,
    /// The delivery mode's encoding; the timer and errors have none and are always vectored.
    #[bits(3)]
    pub delivery_mode: u8,
    #[bits(1)]
    __: u8,
    /// Still being delivered: never seen.
    pub delivery_pending: bool,
    /// A pin is active low.
    pub is_active_low: bool,
    /// A pin's level-triggered interrupt has not ended: never seen, the pins are quiet.
    pub remote_irr: bool,
    /// A pin is level-triggered.
    pub is_level: bool,
    /// No interrupts.
    pub masked: bool,
    /// The timer's mode.
    #[bits(2)]
    pub timer_mode: u8,
    #[bits(13)]
    __: u16,
}

impl LocalEntry {
    /// After reset, and while software has disabled the APIC.
    pub const MASKED: u32 = 1 << 16;
    /// Bits that read as zero but may be written as anything.
    pub const IGNORED: u32 = 1 << 12 | 1 << 14;

    /// The vector to raise, unless masked.
    pub const fn unmasked_vector(self) -> Option<u8> {
        if self.masked() { None } else { Some(self.vector()) }
    }
}
