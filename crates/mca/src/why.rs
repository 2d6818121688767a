// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons for which a machine check ends the host.

use core::fmt;

/// The reason why the host cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// MCi_STATUS.PCC: the CPU's own state may be corrupt.
    ContextCorrupt,
    /// An error that was not corrected overwrote another one, or was not recorded.
    Overflow,
    /// The CPU does not contain errors of this kind.
    NotContained,
    /// No memory is named that could be taken from its owner.
    NoAddress,
    /// The host itself used the damaged data.
    HostUsedIt,
    /// The host was interrupted where it cannot go on.
    NotRestartable,
    /// A guest cannot go on, and no bank reports why.
    Unexplained,
    /// More errors at once than are survived.
    TooMany,
    /// The damaged memory is the host's own.
    HostMemory,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContextCorrupt => "the CPU's state may be corrupt (PCC)",
            Self::Overflow => "another uncorrected error was lost (OVER)",
            Self::NotContained => "the CPU does not contain errors of this kind",
            Self::NoAddress => "the damaged memory is not named",
            Self::HostUsedIt => "the host itself used the damaged data",
            Self::NotRestartable => "the host was interrupted where it cannot resume (RIPV)",
            Self::Unexplained => "a guest cannot resume, and no bank holds an error",
            Self::TooMany => "more errors at once than are survived",
            Self::HostMemory => "the damaged memory is the host's own",
        })
    }
}
