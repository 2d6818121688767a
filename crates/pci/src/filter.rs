// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choice of the functions that are probed, and of the time: `all`, `lazy`, or `allow:` and patterns separated by
//! commas.
//!
//! | pattern | names |
//! |---|---|
//! | `00:1f.3`, `0000:00:1f.3` | the function at this place |
//! | `8086:100e`, `1af4:*` | functions by vendor and device |
//! | `class:02`, `class:0200` | functions by base class, or base class and subclass |

use core::fmt;
use core::str::FromStr;

use arrayvec::ArrayVec;

use crate::address::hexadecimal;
use crate::{Bdf, Identity};

/// Patterns that one filter holds.
pub const MAX_PATTERNS: usize = 16;

/// The functions that are probed, and the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All, before guests run.
    All,
    /// Those that a pattern names, before guests run; others never.
    Allow(ArrayVec<Pattern, MAX_PATTERNS>),
    /// All, once guests run.
    #[default]
    Lazy,
}

/// Functions meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The one at a place.
    Place(Bdf),
    /// Those of a vendor; all of its devices if none is named.
    Model {
        /// Vendor identifier.
        vendor: u16,
        /// Device identifier.
        device: Option<u16>,
    },
    /// Those of a class; all of its subclasses if none is named.
    Class {
        /// Base class.
        base: u8,
        /// Subclass.
        sub: Option<u8>,
    },
}

impl Filter {
    /// Returns the places named, if places are all that is named: then nothing else need be touched.
    pub fn places(&self) -> Option<ArrayVec<Bdf, MAX_PATTERNS>> {
        let Self::Allow(patterns) = self else { return None };
        let place = |pattern: &Pattern| if let Pattern::Place(place) = pattern { Some(*place) } else { None };
        patterns.iter().map(place).collect()
    }

    /// Returns whether a function with this identity at this place is probed.
    pub fn allows(&self, place: Bdf, identity: &Identity) -> bool {
        match self {
            Self::All | Self::Lazy => true,
            Self::Allow(patterns) => patterns.iter().any(|pattern| pattern.names(place, identity)),
        }
    }
}

impl Pattern {
    fn names(self, place: Bdf, identity: &Identity) -> bool {
        match self {
            Self::Place(named) => named == place,
            Self::Model { vendor, device } => {
                vendor == identity.vendor && device.is_none_or(|device| device == identity.device)
            }
            Self::Class { base, sub } => base == identity.class && sub.is_none_or(|sub| sub == identity.subclass),
        }
    }
}

/// Errors of a filter's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// Neither `all`, nor `lazy`, nor `allow:`.
    UnknownPolicy,
    /// Nothing follows `allow:`.
    NothingAllowed,
    /// A pattern, counted from 1, is none.
    BadPattern {
        /// Its number.
        number: usize,
    },
    /// More than [`MAX_PATTERNS`].
    TooManyPatterns,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownPolicy => f.write_str("give all, lazy, or allow: and patterns"),
            Self::NothingAllowed => {
                f.write_str("allow: needs patterns: a place 00:1f.3, vendor:device 8086:100e, class:0200")
            }
            Self::BadPattern { number } => {
                write!(f, "pattern {number} is none: give a place 00:1f.3, vendor:device 8086:100e or class:0200")
            }
            Self::TooManyPatterns => write!(f, "more than {MAX_PATTERNS} patterns: name a class or a vendor instead"),
        }
    }
}

impl core::error::Error for FilterError {}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let patterns = match text {
            "all" => return Ok(Self::All),
            "lazy" => return Ok(Self::Lazy),
            _ => text.strip_prefix("allow:").ok_or(FilterError::UnknownPolicy)?,
        };
        if patterns.is_empty() {
            return Err(FilterError::NothingAllowed);
        }
        let mut allowed = ArrayVec::new();
        for (index, pattern) in patterns.split(',').enumerate() {
            let pattern = Pattern::read(pattern).ok_or(FilterError::BadPattern { number: index + 1 })?;
            allowed.try_push(pattern).map_err(|_| FilterError::TooManyPatterns)?;
        }
        Ok(Self::Allow(allowed))
    }
}

impl Pattern {
    fn read(text: &str) -> Option<Self> {
        if let Some(class) = text.strip_prefix("class:") {
            let value = hexadecimal(class)?;
            return match class.len() {
                2 => Some(Self::Class { base: value as u8, sub: None }),
                4 => Some(Self::Class { base: (value >> 8) as u8, sub: Some(value as u8) }),
                _ => None,
            };
        }
        if let Ok(place) = text.parse() {
            return Some(Self::Place(place));
        }
        let (vendor, device) = text.split_once(':')?;
        let device = if device == "*" { None } else { Some(hexadecimal(device)?) };
        Some(Self::Model { vendor: hexadecimal(vendor)?, device })
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
