// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a unit cannot be used, or a request not be carried out.

use core::fmt;

use paging::MapError;
use pci::Bdf;

/// The reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The unit did not complete a command within a second.
    NoAnswer {
        /// The event that was waited for.
        what: &'static str,
    },
    /// The unit reported an error while it executed a command.
    Refused {
        /// The command.
        what: &'static str,
        /// The errors, as the unit's status register has them.
        status: u32,
    },
    /// The unit reads as all ones, or as an impossible value.
    Absurd {
        /// The register.
        register: &'static str,
        /// The value read.
        value: u64,
    },
    /// The unit lacks what Baton needs.
    Lacks {
        /// The feature, as the specification names it.
        feature: &'static str,
    },
    /// There is no memory for a table.
    OutOfMemory,
    /// A domain's tables refused a request.
    Map(MapError),
    /// The function is not in this unit's scope.
    NotHere {
        /// The function.
        source: Bdf,
    },
    /// The unit has no entry left for an interrupt.
    NoInterrupt {
        /// The function.
        source: Bdf,
    },
    /// An interrupt cannot be sent there: the unit is not in x2APIC mode.
    FarDestination {
        /// The CPU's APIC identifier.
        destination: u32,
    },
    /// The unit's tables, which an image before this one has left, are not as this one expects.
    NotAdopted {
        /// The reason.
        reason: &'static str,
    },
}

impl From<MapError> for Problem {
    fn from(error: MapError) -> Self {
        match error {
            MapError::OutOfTables => Self::OutOfMemory,
            error => Self::Map(error),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { what } => write!(f, "it did not finish within a second: {what}"),
            Self::Refused { what, status } => write!(f, "it reported an error (status {status:#x}): {what}"),
            Self::Absurd { register, value } => write!(f, "its register {register} cannot read {value:#x}"),
            Self::Lacks { feature } => write!(f, "it lacks {feature}"),
            Self::OutOfMemory => f.write_str("no memory for its tables; give the machine more memory"),
            Self::Map(error) => write!(f, "its tables refuse: {error}"),
            Self::NotHere { source } => write!(f, "{source} is not behind it"),
            Self::NoInterrupt { source } => write!(f, "it has no entry left for an interrupt of {source}"),
            Self::FarDestination { destination } => {
                write!(f, "it cannot interrupt APIC {destination}: it is not in x2APIC mode")
            }
            Self::NotAdopted { reason } => write!(f, "what the image before has left cannot be taken over: {reason}"),
        }
    }
}
