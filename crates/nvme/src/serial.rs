// SPDX-License-Identifier: MIT OR Apache-2.0
//! A serial number.

use core::fmt;
use core::str;

use arrayvec::ArrayString;

use crate::Problem;

/// The bytes of the field (NVM Express Base 2.0, figure 275: SN).
pub(crate) const FIELD_BYTES: usize = 20;

/// A serial number: 1 to 20 printable ASCII characters, without the blanks that fill the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Serial(ArrayString<FIELD_BYTES>);

impl Serial {
    /// The number in this text; `None` if none can be written so.
    pub fn new(text: &str) -> Option<Self> {
        let is_text = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        let is_trimmed = text.trim_matches(' ') == text;
        ArrayString::from(text).ok().filter(|_| is_text && is_trimmed).map(Self)
    }

    /// The number in the field of Identify's answer. Some controllers fill it with zeros.
    pub(crate) fn of_field(field: [u8; FIELD_BYTES]) -> Result<Self, Problem> {
        let text = str::from_utf8(&field).map_err(|_| Problem::NotText)?;
        Self::new(text.trim_end_matches(['\0', ' ']).trim_start_matches(' ')).ok_or(Problem::NotText)
    }

    /// Its characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
