// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit's report of an access that it has refused.

use core::fmt;

use pci::Bdf;

/// The kind of a function's access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read memory.
    Read,
    /// To write memory.
    Write,
    /// To interrupt.
    Interrupt,
}

/// The reason for which it was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// Nothing is mapped there, or the function is blocked.
    NotMapped,
    /// It is mapped without the right. VT-d reports a write so to what is not mapped, too.
    NotAllowed,
    /// The interrupt is none that was opened for the function.
    NotOpened,
    /// A table's entry is not as the specification requires: a defect of the host. The number is the unit's own.
    BadTable(u8),
    /// Anything else, by the unit's own number.
    Other(u8),
}

/// An access that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The function, as it names itself.
    pub source: Bdf,
    /// The address that it used; the entry's number for an interrupt.
    pub address: u64,
    /// The kind of the access.
    pub access: Access,
    /// The reason.
    pub reason: FaultReason,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, address, .. } = self;
        match self.access {
            Access::Read => write!(f, "{source} wanted to read {address:#x}: {}", self.reason),
            Access::Write => write!(f, "{source} wanted to write {address:#x}: {}", self.reason),
            Access::Interrupt => write!(f, "{source} wanted to interrupt by entry {address:#x}: {}", self.reason),
        }
    }
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMapped => f.write_str("nothing is mapped there for it"),
            Self::NotAllowed => f.write_str("the mapping does not allow it"),
            Self::NotOpened => f.write_str("it was not opened for the function"),
            Self::BadTable(number) => write!(f, "a table of the IOMMU's is wrong (reason {number:#x})"),
            Self::Other(number) => write!(f, "reason {number:#x}"),
        }
    }
}
