// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a message to bytes on the stream.

use core::fmt;

use cobs::CobsEncoder;
use crc::Digest;
use serde::Serialize;

use crate::frame::CHECKSUM;
use crate::{Frame, MAX_FRAME_BYTES, VERSION};
use cbor::{Full, Sink, Writer};

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
    encode_value(frame, buffer)
}

/// Writes any value as the message of a frame.
pub(crate) fn encode_value<'b>(value: &impl Serialize, buffer: &'b mut [u8]) -> Result<&'b [u8], EncodeError> {
    let available_bytes = buffer.len().min(MAX_FRAME_BYTES);
    let refused = EncodeError { available_bytes };
    let (_, for_frame) = buffer[..available_bytes].split_last_mut().ok_or(refused)?;
    let bytes = stuff(value, for_frame).map_err(|Full| refused)?;
    let frame = &mut buffer[..=bytes];
    frame[bytes] = 0;
    Ok(frame)
}

/// Returns the number of bytes without the delimiter.
fn stuff(value: &impl Serialize, into: &mut [u8]) -> Result<usize, Full> {
    let room_bytes = into.len();
    let mut stuffed = Stuffed { encoder: CobsEncoder::new(into), digest: CHECKSUM.digest() };
    stuffed.put(&[VERSION])?;
    value.serialize(&mut Writer::new(&mut stuffed))?;
    let Stuffed { mut encoder, digest } = stuffed;
    encoder.push(&digest.finalize().to_le_bytes()).map_err(|_| Full)?;
    // A zero at the end of the buffer counts a byte that is not there.
    Some(encoder.finalize()).filter(|bytes| *bytes <= room_bytes).ok_or(Full)
}

/// The bytes of a frame on their way into a buffer.
struct Stuffed<'b> {
    encoder: CobsEncoder<'b>,
    digest: Digest<'static, u32>,
}

impl Sink for Stuffed<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.digest.update(bytes);
        self.encoder.push(bytes).map_err(|_| Full)
    }
}

/// Returns the longest beginning of `text` that is at most `max_bytes` long and ends between characters.
pub fn bounded(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
