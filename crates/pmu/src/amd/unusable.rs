// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why counters are not used.

use core::fmt;

/// The reason why counters are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The CPU is of another vendor than AMD.
    OtherMaker,
    /// CPUID reports that there are none.
    NoCounters,
    /// A register does not keep what is written.
    NotWritable,
    /// A counter of cycles stands still.
    Still,
    /// A counter of guests' cycles counts the host's.
    Mixed,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherMaker => "it is not AMD's",
            Self::NoCounters => "CPUID reports no counters",
            Self::NotWritable => "its counters' registers do not keep what is written",
            Self::Still => "its counters stand still",
            Self::Mixed => "its counters count the host's time as a guest's",
        })
    }
}
