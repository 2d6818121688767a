// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a message to bytes on the stream.

use core::fmt;

use postcard::ser_flavors::{Cobs, Slice, crc::CrcModifier};
use serde::Serialize;

use crate::frame::CHECKSUM;
use crate::{Frame, MAX_FRAME_BYTES, VERSION};

/// The message does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// Bytes there were for it.
    pub available_bytes: usize,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the message does not fit into a frame of {} bytes; send it in smaller pages", self.available_bytes)
    }
}

impl core::error::Error for EncodeError {}

/// Writes `frame` into `buffer` as it goes onto the stream, delimiter included, and returns the bytes written. A buffer
/// of [`MAX_FRAME_BYTES`] always suffices; more is never used.
pub fn encode<'b>(frame: &Frame<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], EncodeError> {
    encode_value(&(VERSION, frame), buffer)
}

/// Writes any value with a frame's checksum, stuffing and delimiter.
pub(crate) fn encode_value<'b>(value: &impl Serialize, buffer: &'b mut [u8]) -> Result<&'b [u8], EncodeError> {
    let available_bytes = buffer.len().min(MAX_FRAME_BYTES);
    let refused = EncodeError { available_bytes };
    let stuffed = Cobs::try_new(Slice::new(&mut buffer[..available_bytes])).map_err(|_| refused)?;
    let checked = CrcModifier::new(stuffed, CHECKSUM.digest());
    let written = postcard::serialize_with_flavor(value, checked).map_err(|_| refused)?;
    Ok(written)
}

/// Returns the longest beginning of `text` that is at most `max_bytes` long and ends between characters.
pub fn bounded(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
