// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes as text.

use core::fmt;

/// A prefix and bytes in hexadecimal digits.
pub(crate) struct Hexadecimal<const BYTES: usize>(pub &'static str, pub [u8; BYTES]);

impl<const BYTES: usize> fmt::Display for Hexadecimal<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        self.1.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
