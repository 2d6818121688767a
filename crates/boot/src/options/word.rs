// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts that the readers of several options share: numbers, and the refusal of a value.

use core::fmt;

/// An option does not take this value; [`super::OPTIONS`] lists the accepted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue;

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the option does not take this value")
    }
}

impl core::error::Error for UnknownValue {}

/// Decimal digits and nothing else (`u32::from_str` would take a sign), within bounds.
pub(crate) fn number(word: &str, least: u32, most: u32) -> Option<u32> {
    let digits = word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().ok())?.filter(|number| (least..=most).contains(number))
}
