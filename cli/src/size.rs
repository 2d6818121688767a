// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of memory as people write them: `512MiB`, `2GiB`, `2G`.
//!
//! Units are powers of two, with or without the "iB". A number without a unit is refused: whether it means bytes or
//! mebibytes depends on the tool one is used to.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Bytes.
    pub bytes: u64,
}

/// A text that is no size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no size; write a whole number and a unit, as \"512MiB\" or \"2GiB\"")]
pub struct SizeError {
    text: String,
}

/// Suffixes and the power of two they stand for.
const UNITS: [(&str, u32); 4] = [("T", 40), ("G", 30), ("M", 20), ("K", 10)];

impl Size {
    /// Returns the size of a number of mebibytes.
    pub const fn mebibytes(count: u64) -> Self {
        Self { bytes: count << 20 }
    }
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let refused = || SizeError { text: text.to_owned() };
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let unit = unit.strip_suffix("iB").unwrap_or(unit);
        let (_, shift) = UNITS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(refused)?;
        let number: u64 = number.parse().map_err(|_| refused())?;
        let bytes = number.checked_mul(1 << shift).ok_or_else(refused)?;
        Ok(Self { bytes })
    }
}

impl fmt::Display for Size {
    /// Writes the largest unit that states the size exactly, else mebibytes with one decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = UNITS.into_iter().find(|(_, shift)| self.bytes != 0 && self.bytes.is_multiple_of(1 << shift));
        let text = match exact {
            Some((name, shift)) if shift >= 20 => format!("{} {name}iB", self.bytes >> shift),
            _ if self.bytes < 1 << 10 => format!("{} B", self.bytes),
            _ if self.bytes < 1 << 20 => format!("{:.1} KiB", self.bytes as f64 / f64::from(1 << 10)),
            _ => format!("{:.1} MiB", self.bytes as f64 / f64::from(1 << 20)),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_two() {
        for (text, bytes) in
            [("512MiB", 512 << 20), ("2GiB", 2 << 30), ("2G", 2 << 30), ("4 k", 4096), ("1TiB", 1 << 40)]
        {
            assert_eq!(text.parse(), Ok(Size { bytes }), "{text}");
        }
    }

    #[test]
    fn a_size_without_number_or_unit_is_refused() {
        for text in ["", "512", "MiB", "1.5GiB", "-1G", "2GB", "99999999999T", "1XiB"] {
            let error = text.parse::<Size>().expect_err(text).to_string();
            assert!(error.contains("512MiB"), "{error}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        for (bytes, text) in [(2 << 30, "2 GiB"), (1536 << 20, "1536 MiB"), ((1 << 20) + 1, "1.0 MiB"), (100, "100 B")]
        {
            assert_eq!(Size { bytes }.to_string(), text);
        }
    }
}
