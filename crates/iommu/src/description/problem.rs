// SPDX-License-Identifier: MIT OR Apache-2.0
//! Problems of a table that describes IOMMUs.

use core::fmt;

use firmware::Signature;

use super::reserved::Defect;

/// One thing that was wrong, in which table and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableProblem {
    /// The table.
    pub table: Signature,
    /// Start of the entry, in bytes from the table's first.
    pub offset: u32,
    /// The fault of the entry.
    pub fault: TableFault,
}

impl fmt::Display for TableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, offset, fault } = self;
        write!(f, "ACPI table {table}: the entry at byte {offset} {fault}")
    }
}

/// A fault of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFault {
    /// It runs past the end of what it is in, or is too short for its kind; it is ignored, and so is what follows.
    Truncated,
    /// It is of a kind that the specification does not have; it is ignored.
    UnknownKind {
        /// The kind.
        kind: u16,
    },
    /// The list for it is full; it is ignored.
    NoRoom,
    /// A unit's registers cannot be there; the unit is ignored.
    BadRegisters {
        /// Their physical address.
        address: u64,
    },
    /// A unit's registers are another one's, too; the unit is ignored.
    SharedRegisters {
        /// Their physical address.
        address: u64,
    },
    /// The unit was described before, by an entry of the same kind; this one is ignored.
    RepeatedUnit,
    /// The unit's registers are elsewhere by the entry of another kind, which counts.
    ContradictsUnit {
        /// Their physical address by this entry.
        address: u64,
    },
    /// A range of functions without a beginning or an end, or with an end before its beginning; it is ignored.
    BadFunctions {
        /// The requester identifier at which it begins or ends.
        requester: u16,
    },
    /// A function is behind a unit that was described earlier, too; it stays there.
    TwoUnits {
        /// Its requester identifier.
        requester: u16,
    },
    /// Another unit has all other functions of the segment already; this one gets none.
    TwoRests,
    /// A function has two aliases; the first counts.
    TwoAliases {
        /// Its requester identifier.
        requester: u16,
    },
    /// An I/O APIC or event timer is described with another requester already; this one is ignored.
    RepeatedInterrupter {
        /// Its identifier or number.
        id: u8,
    },
    /// A path of bridges is empty or has numbers that no function has; it is ignored.
    BadPath,
    /// A path leads over a function that is no bridge to a later bus; it is ignored.
    NotABridge {
        /// The function's requester identifier.
        requester: u16,
    },
    /// Paths lead over more bridges than are read; this one is ignored.
    TooManyBridges,
    /// Memory is reserved for no function.
    NoFunctions,
    /// Memory that is reserved for devices cannot be; it is not given to them.
    BadMemory(Defect),
}

impl fmt::Display for TableFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated => f.write_str("is cut short; it and what follows in it are ignored"),
            Self::UnknownKind { kind } => write!(f, "is of the unknown type {kind:#x} and ignored"),
            Self::NoRoom => f.write_str("is one more than are kept of its type, and ignored"),
            Self::BadRegisters { address } => {
                write!(f, "has an IOMMU's registers at {address:#x}, where they cannot be; the IOMMU is ignored")
            }
            Self::SharedRegisters { address } => {
                write!(f, "has an IOMMU's registers at {address:#x}, where another one's are; the IOMMU is ignored")
            }
            Self::RepeatedUnit => f.write_str("describes an IOMMU a second time and is ignored"),
            Self::ContradictsUnit { address } => {
                write!(f, "has an IOMMU's registers at {address:#x}, another entry elsewhere; the other one counts")
            }
            Self::BadFunctions { requester } => {
                write!(f, "is a range of functions without a beginning or end, at {requester:#06x}, and ignored")
            }
            Self::TwoUnits { requester } => {
                write!(f, "puts function {requester:#06x} behind a second IOMMU; the first counts")
            }
            Self::TwoRests => f.write_str("puts all other functions behind a second IOMMU; the first counts"),
            Self::TwoAliases { requester } => {
                write!(f, "gives function {requester:#06x} a second alias; the first counts")
            }
            Self::RepeatedInterrupter { id } => {
                write!(f, "gives I/O APIC or event timer {id} a second requester; the first counts")
            }
            Self::BadPath => f.write_str("names a function that cannot be, and is ignored"),
            Self::NotABridge { requester } => {
                write!(f, "has a path over function {requester:#06x}, which is no bridge to a later bus; it is ignored")
            }
            Self::TooManyBridges => f.write_str("has a path over more bridges than are read, and is ignored"),
            Self::NoFunctions => f.write_str("reserves memory for no function and is ignored"),
            Self::BadMemory(defect) => write!(f, "reserves memory that {defect}; devices do not get it"),
        }
    }
}
