// SPDX-License-Identifier: MIT OR Apache-2.0
//! Problems of firmware's tables, and their consequences.

use core::fmt;

use crate::signature::Signature;

/// Entries of the root table that are checked.
pub const MAX_TABLES: usize = 256;

/// Nothing is known of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no valid root pointer at the reported address, nor where a PC keeps it.
    NoRootPointer,
    /// The root pointer is valid, the root table it points to is not.
    NoRootTable(Problem),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRootPointer => f.write_str(
                "no ACPI root pointer: neither the boot protocol nor the BIOS areas have one; \
                 boot by PVH, or by a loader that passes on the firmware's",
            ),
            Self::NoRootTable(problem) => write!(f, "no usable ACPI root table: {problem}; update the firmware"),
        }
    }
}

impl core::error::Error for Error {}

/// One thing that was wrong, in which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The table.
    pub table: Signature,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ACPI table {}: {}", self.table, self.fault)?;
        match (self.fault.is_of_the_whole_table(), self.table.without_it()) {
            (true, Some(cost)) => write!(f, ": {cost}"),
            _ => Ok(()),
        }
    }
}

/// A fault. Offsets are in bytes from the table's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No other table points to one.
    Missing,
    /// There is no readable memory at this physical address.
    Unreadable {
        /// Its address.
        address: u64,
    },
    /// Something else is at the table's physical address.
    WrongSignature {
        /// Its address.
        address: u64,
    },
    /// The table's length is below the least for its kind.
    TooShort {
        /// Its length.
        bytes: u32,
        /// The least for its kind.
        needed: u32,
    },
    /// The table's length is above the most that is read.
    TooLong {
        /// Its length.
        bytes: u32,
        /// The most that is read.
        at_most: u32,
    },
    /// The bytes do not add up to zero.
    BadChecksum {
        /// Sum of its bytes.
        sum: u8,
    },
    /// Its revision is 0, which no specification knows; it is read as the first.
    NoRevision,
    /// There was one already; this one is ignored.
    Repeated {
        /// Address of this one.
        address: u64,
    },
    /// Another table, which no machine has beside this one, is there, too.
    Contradicts {
        /// The other one.
        other: Signature,
    },
    /// Only the first [`MAX_TABLES`] entries of the root table are checked.
    TooManyTables {
        /// Number of entries.
        count: u32,
    },
    /// An entry runs past the table's end, or is too short for its type.
    TruncatedEntry {
        /// Offset in bytes.
        offset: u32,
    },
    /// An entry holds values that cannot be; it is ignored.
    BadEntry {
        /// Offset in bytes.
        offset: u32,
    },
    /// The list for this entry is full; it is ignored.
    NoRoom {
        /// Offset of the entry in bytes.
        offset: u32,
    },
    /// Two usable CPUs have the same APIC identifier; the second is ignored.
    DuplicateApicId {
        /// The identifier.
        apic_id: u32,
    },
    /// A usable CPU has an APIC identifier that means all of them; it is ignored.
    BroadcastApicId {
        /// The identifier.
        apic_id: u32,
    },
    /// A register is where it cannot be used; it counts as absent.
    UnusableRegister {
        /// The register.
        register: Register,
        /// Its address space (ACPI 6.5, section 5.2.3.2).
        space: u8,
        /// Its address there.
        address: u64,
    },
    /// There is no `\_S5_` package: the machine cannot be powered off.
    NoSleepType,
}

/// A register that a table describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// PM1a control.
    Pm1aControl,
    /// PM1b control.
    Pm1bControl,
    /// Power management timer.
    PmTimer,
    /// System management command port.
    SmiCommand,
    /// Reset register.
    Reset,
    /// Sleep control.
    SleepControl,
    /// Sleep status.
    SleepStatus,
    /// High precision event timer.
    Hpet,
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pm1aControl => "PM1a control",
            Self::Pm1bControl => "PM1b control",
            Self::PmTimer => "power management timer",
            Self::SmiCommand => "SMI command",
            Self::Reset => "reset",
            Self::SleepControl => "sleep control",
            Self::SleepStatus => "sleep status",
            Self::Hpet => "event timer",
        })
    }
}

impl Fault {
    /// Returns whether the whole table goes unread because of this.
    pub const fn is_of_the_whole_table(&self) -> bool {
        matches!(
            self,
            Self::Missing
                | Self::Unreadable { .. }
                | Self::WrongSignature { .. }
                | Self::TooShort { .. }
                | Self::TooLong { .. }
                | Self::BadChecksum { .. }
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Missing => f.write_str("missing"),
            Self::Unreadable { address } => write!(f, "no readable memory at {address:#x}"),
            Self::WrongSignature { address } => write!(f, "something else is at {address:#x}"),
            Self::TooShort { bytes, needed } => write!(f, "{bytes} bytes long, at least {needed} are needed"),
            Self::TooLong { bytes, at_most } => write!(f, "{bytes} bytes long, at most {at_most} are read"),
            Self::BadChecksum { sum } => write!(f, "corrupt, its bytes add up to {sum:#04x} instead of 0"),
            Self::NoRevision => f.write_str("of revision 0, which there is not; read as the first"),
            Self::Repeated { address } => write!(f, "a second one, at {address:#x}, is ignored"),
            Self::Contradicts { other } => write!(f, "there is an {other}, too; only one of the two can be true"),
            Self::TooManyTables { count } => write!(f, "{count} tables, only the first {MAX_TABLES} are checked"),
            Self::TruncatedEntry { offset } => write!(f, "the entry at byte {offset} is cut short and ignored"),
            Self::BadEntry { offset } => write!(f, "the entry at byte {offset} makes no sense and is ignored"),
            Self::NoRoom { offset } => write!(f, "more entries of a kind than supported, from byte {offset} on"),
            Self::DuplicateApicId { apic_id } => write!(f, "a second CPU with APIC id {apic_id} is ignored"),
            Self::BroadcastApicId { apic_id } => {
                write!(f, "a CPU with APIC id {apic_id:#x}, which means all of them, is ignored")
            }
            Self::UnusableRegister { register, space, address } => {
                write!(f, "the {register} register at {address:#x} in address space {space} cannot be used")
            }
            Self::NoSleepType => f.write_str("no \\_S5_ package: the machine cannot be powered off"),
        }
    }
}
