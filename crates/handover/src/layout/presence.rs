// SPDX-License-Identifier: MIT OR Apache-2.0
//! Presence of a section in a record.

/// Presence of a section: required or not, and whether a reader must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is always there.
    Required,
    /// It may be missing; where it is there, a reader that does not know it refuses the record.
    Understood,
    /// It may be missing or be passed over.
    Optional,
}

impl core::fmt::Display for Presence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Required => "required",
            Self::Understood => "must be understood",
            Self::Optional => "may be passed over",
        })
    }
}
