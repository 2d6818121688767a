// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons for a refusal.

use core::fmt;

use units::PhysAddr;

/// A refused request. It has changed no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// `map`: something is mapped at `address` already.
    AlreadyMapped {
        /// The first such address in the range.
        address: u64,
    },
    /// `unmap`, `protect`: nothing is mapped at `address`.
    NotMapped {
        /// The first such address in the range.
        address: u64,
    },
    /// An address or a length is not a multiple of 4 KiB.
    Misaligned {
        /// The address or length.
        value: u64,
    },
    /// The range leaves the 48 bits that four levels translate.
    NotCanonical {
        /// First address of the range.
        address: u64,
        /// Length of the range in bytes.
        bytes: u64,
    },
    /// The physical end passes 52 bits.
    BeyondPhysical {
        /// First address of the physical range.
        phys: PhysAddr,
        /// Length of the range in bytes.
        bytes: u64,
    },
    /// No frame was left for a table.
    OutOfTables,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AlreadyMapped { address } => write!(f, "address {address:#x} is mapped already: unmap it first"),
            Self::NotMapped { address } => write!(f, "address {address:#x} is not mapped"),
            Self::Misaligned { value } => write!(f, "{value:#x} is not a multiple of 4 KiB, the smallest page"),
            Self::NotCanonical { address, bytes } => {
                write!(f, "{bytes:#x} bytes at address {address:#x} leave the 48-bit address space")
            }
            Self::BeyondPhysical { phys, bytes } => {
                write!(f, "{bytes:#x} bytes at physical address {phys} pass the CPU's 52 bits")
            }
            Self::OutOfTables => f.write_str("no frame is left for a page table: free memory or map less"),
        }
    }
}

impl core::error::Error for MapError {}
