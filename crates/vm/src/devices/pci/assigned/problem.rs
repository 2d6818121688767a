// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a physical function cannot be given to a guest.

use core::fmt;

use ::pci::Bdf;

/// The function, the register and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The function.
    pub function: Bdf,
    /// The configuration register.
    pub register: u16,
    /// The problem there.
    pub reason: Reason,
}

/// A problem with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It reads as all ones: the function does not answer.
    Vanished,
    /// The header is a bridge's or unknown.
    NotEndpoint(u8),
    /// The capability list comes back to this register.
    CapabilityLoop,
    /// The capability list leads into the header.
    StrayCapability,
    /// A capability reaches past the end of configuration space.
    CapabilityCutOff,
    /// A capability lies in another one, which begins at this register.
    CapabilityOverlap(u16),
    /// A second capability of this kind.
    CapabilityTwice(u8),
    /// A kind of range that does not exist.
    UnknownRange,
    /// A 64-bit range begins in the last register.
    HalfRange,
    /// A range's size is no power of two, or too large.
    RangeSize,
    /// A range has another size at the second reading.
    RangeChanges,
    /// A range does not keep its address.
    RangeMoves,
    /// A range of memory has no address, or one that is no multiple of its size.
    RangeNotPlaced,
    /// More MSI vectors than there can be.
    MsiVectors,
    /// The MSI-X table is not inside of a range of memory.
    TableOutside,
    /// The MSI-X pending bits are not inside of a range of memory.
    PendingOutside,
    /// The MSI-X pending bits overlap the table.
    PendingInTable,
    /// A virtio function's registers are not inside of a range.
    RegistersOutside,
    /// There is no room for its capabilities in the virtual configuration space.
    NoRoom,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vanished => "it reads as all ones; the device has vanished or is powered off",
            Self::NotEndpoint(header) => return write!(f, "header type {header:#x} is no endpoint's"),
            Self::CapabilityLoop => "the capability list comes back here",
            Self::StrayCapability => "the capability list leads into the header",
            Self::CapabilityCutOff => "the capability reaches past the end of configuration space",
            Self::CapabilityOverlap(other) => return write!(f, "the capability lies in the one at {other:#x}"),
            Self::CapabilityTwice(id) => return write!(f, "a second capability {id:#04x}"),
            Self::UnknownRange => "a kind of range that does not exist",
            Self::HalfRange => "a 64-bit range begins in the last register",
            Self::RangeSize => "the range's size is no power of two from 16 bytes (4 ports) up, or has over 256 ports",
            Self::RangeChanges => "the range has another size at a second reading",
            Self::RangeMoves => "the range does not keep its address",
            Self::RangeNotPlaced => "the range has no address that fits its size; is the firmware to assign it?",
            Self::MsiVectors => "more than 32 MSI vectors",
            Self::TableOutside => "the MSI-X table is not inside of a range of memory",
            Self::PendingOutside => "the MSI-X pending bits are not inside of a range of memory",
            Self::PendingInTable => "the MSI-X pending bits overlap the table",
            Self::RegistersOutside => "the virtio registers are not inside of a range",
            Self::NoRoom => "its capabilities do not fit",
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: register {:#04x}: {}", self.function, self.register, self.reason)
    }
}
