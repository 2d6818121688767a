// SPDX-License-Identifier: MIT OR Apache-2.0
//! Severity of an error.

use crate::recovery::Recovery;
use crate::status::Status;
use crate::why::Why;

/// Severity of the error in a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The hardware has corrected it.
    Corrected,
    /// It was not corrected, and its reporting was not enabled: it has stopped no context.
    Unsignalled,
    /// It was not corrected. The data are marked or were not used: everything may go on, but for the owner of the data.
    Optional,
    /// It was not corrected, and the interrupted context has used the data.
    Required,
    /// Nothing is known to be intact.
    Fatal(Why),
}

/// Error codes of a data load and an instruction fetch (Intel SDM vol. 3, table 16-10).
const USED_DATA: [u16; 2] = [0x134, 0x150];

/// Judges a valid status.
pub(crate) fn of(status: Status, recovery: Recovery) -> Severity {
    let is_uncorrected = status.has(Status::UNCORRECTED);
    // With Intel's flags the bit is part of a count of corrected errors.
    let is_deferred = recovery != Recovery::Flags && status.has(Status::DEFERRED);
    match (is_uncorrected || is_deferred, status.has(Status::CONTEXT_CORRUPT)) {
        (false, _) => Severity::Corrected,
        (true, true) if status.has(Status::ENABLED) => Severity::Fatal(Why::ContextCorrupt),
        (true, true) => Severity::Unsignalled,
        (true, false) if is_deferred && !is_uncorrected => Severity::Optional,
        (true, false) => uncorrected(status, recovery),
    }
}

/// The CPU's own state is intact.
fn uncorrected(status: Status, recovery: Recovery) -> Severity {
    let is_enabled = status.has(Status::ENABLED);
    match recovery {
        // The table in Intel SDM vol. 3, section 16.6.4: UCNA, SRAO, SRAR.
        Recovery::Flags => match (status.has(Status::SIGNALLED), status.has(Status::ACTION_REQUIRED)) {
            (_, false) => Severity::Optional,
            (false, true) => Severity::Fatal(Why::NotContained),
            (true, true) if status.has(Status::OVERFLOW) => Severity::Fatal(Why::Overflow),
            (true, true) if USED_DATA.contains(&(status.code() & 0xefff)) => Severity::Required,
            (true, true) => Severity::Fatal(Why::NotContained),
        },
        _ if !is_enabled => Severity::Unsignalled,
        Recovery::Poison { survives_overflow: false } if status.has(Status::OVERFLOW) => Severity::Fatal(Why::Overflow),
        Recovery::Poison { .. } => Severity::Required,
        Recovery::None => Severity::Fatal(Why::NotContained),
    }
}
