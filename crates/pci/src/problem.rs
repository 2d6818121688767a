// SPDX-License-Identifier: MIT OR Apache-2.0
//! Problems of a function.

use core::fmt;

use arrayvec::ArrayVec;

const MAX_PROBLEMS: usize = 4;

/// A problem of a function. The registers that it concerns are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It was not ready for a millisecond.
    NotReady,
    /// It stopped to answer while it was read.
    Vanished,
    /// Its list of capabilities comes back to this register.
    CapabilityLoop {
        /// Register of its first occurrence.
        register: u8,
    },
    /// Its list of capabilities leads into the header.
    StrayCapability {
        /// Register to which it points.
        register: u8,
    },
    /// A range of 64 bits begins in the last register.
    HalfRange {
        /// Index of the register.
        index: u8,
    },
    /// A bridge to a bus that was met before, or to its own.
    BridgeLoop {
        /// The bus.
        bus: u8,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady => f.write_str("it was not ready within a millisecond"),
            Self::Vanished => f.write_str("it stopped to answer while it was read"),
            Self::CapabilityLoop { register } => write!(f, "its capability list comes back to {register:#x}"),
            Self::StrayCapability { register } => {
                write!(f, "its capability list leads into its header ({register:#x})")
            }
            Self::HalfRange { index } => write!(f, "a 64-bit range begins in its last register ({index})"),
            Self::BridgeLoop { bus } => write!(f, "it leads to bus {bus:#04x}, which was met before"),
        }
    }
}

/// A few problems; more of one function are not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(ArrayVec<Problem, MAX_PROBLEMS>);

impl Problems {
    pub(crate) fn push(&mut self, problem: Problem) {
        // More than four of one function teach nothing.
        let _ = self.0.try_push(problem);
    }

    /// Returns them in the order in which they were met.
    pub fn iter(&self) -> impl Iterator<Item = Problem> + '_ {
        self.0.iter().copied()
    }
}
