// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text in a field of fixed length.

/// Text, padded with zeroes; what does not fit is cut at a character's boundary.
pub const fn padded<const BYTES: usize>(text: &str) -> [u8; BYTES] {
    const CONTINUATION_MASK: u8 = 0xc0;
    const CONTINUATION: u8 = 0x80;
    let from = text.as_bytes();
    let mut end = if from.len() < BYTES { from.len() } else { BYTES };
    while end > 0 && end < from.len() && from[end] & CONTINUATION_MASK == CONTINUATION {
        end -= 1;
    }
    let mut bytes = [0; BYTES];
    let mut at = 0;
    while at < end {
        bytes[at] = from[at];
        at += 1;
    }
    bytes
}

/// The text before the padding; what is not UTF-8 ends it.
pub fn unpadded(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = &bytes[..end];
    core::str::from_utf8(text).or_else(|error| core::str::from_utf8(&text[..error.valid_up_to()])).unwrap_or_default()
}
