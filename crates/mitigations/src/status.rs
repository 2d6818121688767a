// SPDX-License-Identifier: MIT OR Apache-2.0
//! Status of a host with respect to a vulnerability.

use core::fmt;

/// Status of a host with respect to one vulnerability. [`fmt::Display`] writes it as Linux does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The CPU does not have it.
    NotAffected,
    /// It has, and this is missing; both may be empty.
    Vulnerable(&'static str, &'static str),
    /// It has, and this is done; the second may be empty.
    Mitigation(&'static str, &'static str),
    /// Nothing is known, for this reason.
    Unknown(&'static str),
}

impl Status {
    /// Returns whether a guest may get at data that are not its own.
    pub const fn is_vulnerable(self) -> bool {
        matches!(self, Self::Vulnerable(..) | Self::Unknown(_))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, first, second) = match *self {
            Self::NotAffected => ("Not affected", "", ""),
            Self::Vulnerable(first, second) => ("Vulnerable", first, second),
            Self::Mitigation(first, second) => ("Mitigation", first, second),
            Self::Unknown(first) => ("Unknown", first, ""),
        };
        f.write_str(word)?;
        let parts = [first, second];
        for (part, joint) in parts.iter().filter(|part| !part.is_empty()).zip([": ", "; "]) {
            write!(f, "{joint}{part}")?;
        }
        Ok(())
    }
}
