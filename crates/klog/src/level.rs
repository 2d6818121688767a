// SPDX-License-Identifier: MIT OR Apache-2.0
//! Level of a record.

use core::fmt;
use core::str::FromStr;

/// The most important level is the least: "log what is at most `Info`".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Something does not work.
    Error = 1,
    /// Something is not as it should be, and work goes on.
    Warn = 2,
    /// For operators.
    Info = 3,
    /// For developers.
    Debug = 4,
    /// Everything.
    Trace = 5,
}

impl Level {
    /// All levels, the most important first.
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// The name, as it is printed and as `log=` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|level| *level as u8 == number)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLevel;

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a log level: use error, warn, info, debug or trace")
    }
}

impl core::error::Error for UnknownLevel {}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(word: &str) -> Result<Self, UnknownLevel> {
        Self::ALL.into_iter().find(|level| level.name() == word).ok_or(UnknownLevel)
    }
}
