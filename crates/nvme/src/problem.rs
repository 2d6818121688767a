// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a controller does not report its serial number.

use core::fmt;

/// The reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Its registers read as ones.
    Gone,
    /// Its smallest memory page has this many bytes, more than 4,096.
    PageSize(u64),
    /// It was not ready, or not disabled, within the time that it states itself (at most ten seconds).
    NotReady,
    /// It reports a fatal error.
    Fatal,
    /// The command was not completed within five seconds.
    NoCompletion,
    /// The command was completed with this status: type and code (figure 92).
    Refused(u16),
    /// The serial number is empty, or not of printable ASCII.
    NotText,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it does not answer"),
            Self::PageSize(bytes) => write!(f, "its smallest memory page has {bytes} bytes, more than 4,096"),
            Self::NotReady => f.write_str("it was not ready in time"),
            Self::Fatal => f.write_str("it reports a fatal error"),
            Self::NoCompletion => f.write_str("it did not answer Identify within five seconds"),
            Self::Refused(status) => write!(f, "it refused Identify with status {status:#x}"),
            Self::NotText => f.write_str("its serial number is empty, or not of printable characters"),
        }
    }
}

impl core::error::Error for Problem {}
