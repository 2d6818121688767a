// SPDX-License-Identifier: MIT OR Apache-2.0
//! From bytes on the stream to messages.

use alloc::string::{String, ToString as _};
use core::fmt;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;

use crate::frame::{CHECKSUM, CHECKSUM_BYTES};
use crate::{Frame, MAX_FRAME_BYTES, Refusal, RefusalCode, Request, Response, VERSION};
use cbor::{Error, Reader};

/// The shortest frame, unstuffed: version, one byte of message, checksum.
const MIN_BODY_BYTES: usize = 1 + 1 + CHECKSUM_BYTES;

/// The reason why the bytes between two delimiters are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The bytes are not stuffed as frames are: noise, or another protocol.
    Garbage {
        /// Number of bytes.
        bytes: usize,
    },
    /// The frame is shorter than any frame, or the stream ended within it.
    Truncated {
        /// Number of bytes.
        bytes: usize,
    },
    /// No delimiter came within [`MAX_FRAME_BYTES`].
    Oversize,
    /// The frame was damaged on its way.
    BadChecksum {
        /// The checksum it carries.
        stated: u32,
        /// The checksum of what arrived.
        computed: u32,
    },
    /// The frame is whole, and of a version that is not [`VERSION`].
    UnknownVersion {
        /// Its version.
        found: u8,
    },
    /// The frame is whole and of this version, and yet holds no message.
    Malformed,
    /// The frame holds a request of a release newer than this side.
    NewRequest {
        /// [`Request::id`].
        id: u32,
    },
    /// The frame holds a response of a release newer than this side.
    NewResponse {
        /// [`crate::Response::id`].
        id: u32,
    },
    /// The frame holds another message of a release newer than this side.
    NewMessage,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbage { bytes } => {
                write!(f, "{bytes} bytes of garbage instead of a frame; is something else using this connection?")
            }
            Self::Truncated { bytes } => write!(f, "a frame broke off after {bytes} bytes; send it again"),
            Self::Oversize => {
                write!(f, "a frame is longer than {MAX_FRAME_BYTES} bytes; send its content in smaller messages")
            }
            Self::BadChecksum { stated, computed } => {
                write!(f, "a frame was damaged (checksum {computed:#010x}, it states {stated:#010x}); send it again")
            }
            Self::UnknownVersion { found } => {
                write!(
                    f,
                    "a message of version {found}, this side speaks version {VERSION}; use tool and host of one release"
                )
            }
            Self::Malformed => write!(f, "a frame holds no message of version {VERSION}; its sender is in error"),
            Self::NewRequest { .. } => {
                f.write_str("the host does not know the request; update it, or use its own tool")
            }
            Self::NewResponse { .. } => f.write_str("the host's answer is of a newer release; use its own tool"),
            Self::NewMessage => f.write_str("a message is of a newer release; use tool and host of one release"),
        }
    }
}

impl core::error::Error for FrameError {}

impl FrameError {
    /// Returns an answer of a newer release as a refusal, so that its request ends.
    ///
    /// # Errors
    /// It is something else.
    pub fn as_refusal(self) -> Result<Frame<'static>, Self> {
        let Self::NewResponse { id } = self else { return Err(self) };
        let refusal = Refusal { code: RefusalCode::Protocol, reason: self.to_string(), hint: String::new() };
        Ok(Frame::Response(Response { id, result: Err(refusal) }))
    }
}

/// Finds frames in a stream of bytes, however the stream is cut into pieces.
///
/// An error costs the bytes up to the next delimiter and nothing after it.
pub struct Decoder {
    buffer: [u8; MAX_FRAME_BYTES],
    filled_bytes: usize,
    /// The current frame has outgrown the buffer and has been reported; the rest of it is skipped.
    is_skipping: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Returns a decoder at the beginning of a stream.
    pub const fn new() -> Self {
        Self { buffer: [0; MAX_FRAME_BYTES], filled_bytes: 0, is_skipping: false }
    }

    /// Takes some bytes of the stream and hands every message (or error) that they complete to `sink`, in order.
    pub fn push(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Result<Frame<'static>, FrameError>)) {
        while let Some(body) = self.complete(&mut bytes) {
            sink(body.and_then(decode));
        }
    }

    /// Takes the next byte of the stream; returns the message (or error) that it completes.
    pub fn push_byte(&mut self, byte: u8) -> Option<Result<Frame<'static>, FrameError>> {
        Some(self.complete(&mut &[byte][..])?.and_then(decode))
    }

    /// Takes bytes of the stream, and removes them from `bytes`, up to the first message (or error) that they complete,
    /// and returns that. It is for a host, which takes requests only: any other message is `None`, and not decoded.
    /// Thus a host has no code for decoding the messages of hosts.
    pub fn push_to_host(&mut self, bytes: &mut &[u8]) -> Option<Result<Option<Request>, FrameError>> {
        Some(self.complete(bytes)?.and_then(decode_request))
    }

    /// Returns the next message, still encoded, that these bytes complete.
    fn complete(&mut self, bytes: &mut &[u8]) -> Option<Result<&[u8], FrameError>> {
        let stuffed_bytes = self.store_frame(bytes)?;
        Some(stuffed_bytes.and_then(|count| body_of(&mut self.buffer[..count])))
    }

    /// Stores bytes up to the end of the next frame; returns its length.
    fn store_frame(&mut self, bytes: &mut &[u8]) -> Option<Result<usize, FrameError>> {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|&byte| byte == 0);
            let (within, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            *bytes = rest;
            if let Some(error) = self.store(within) {
                return Some(Err(error));
            }
            if let Some((_, rest)) = rest.split_first() {
                *bytes = rest;
                let count = core::mem::take(&mut self.filled_bytes);
                if !core::mem::take(&mut self.is_skipping) && count > 0 {
                    return Some(Ok(count));
                }
            }
        }
        None
    }

    /// Drops the frame in progress, as at the end of a connection; returns an error where there was one.
    pub fn finish(&mut self) -> Option<FrameError> {
        let bytes = core::mem::take(&mut self.filled_bytes);
        self.is_skipping = false;
        (bytes > 0).then_some(FrameError::Truncated { bytes })
    }

    /// Returns whether no frame has begun to come.
    pub fn is_between_frames(&self) -> bool {
        self.filled_bytes == 0 && !self.is_skipping
    }

    /// Stores bytes of a frame.
    fn store(&mut self, bytes: &[u8]) -> Option<FrameError> {
        if self.is_skipping {
            return None;
        }
        // One byte of the bound is the delimiter's.
        if bytes.len() > MAX_FRAME_BYTES - 1 - self.filled_bytes {
            self.is_skipping = true;
            self.filled_bytes = 0;
            return Some(FrameError::Oversize);
        }
        self.buffer[self.filled_bytes..][..bytes.len()].copy_from_slice(bytes);
        self.filled_bytes += bytes.len();
        None
    }
}

/// Returns the encoded message between two delimiters, unstuffed in place.
fn body_of(stuffed: &mut [u8]) -> Result<&[u8], FrameError> {
    let bytes = stuffed.len();
    let body_bytes = unstuff(stuffed).ok_or(FrameError::Garbage { bytes })?;
    checked(&stuffed[..body_bytes])
}

/// Takes COBS stuffing out of bytes without a zero, in place. Returns the number of bytes that are left, or `None`
/// where a block runs past the end.
pub(crate) fn unstuff(bytes: &mut [u8]) -> Option<usize> {
    cobs::decode_in_place(bytes).ok()
}

fn decode<T: DeserializeOwned>(message: &[u8]) -> Result<T, FrameError> {
    cbor::read(message).map_err(|error| explain(error, message))
}

/// Numbers of [`Frame`]'s variants. Tests hold them to it.
pub(crate) mod kind {
    pub const REQUEST: u32 = 0;
    pub const RESPONSE: u32 = 1;
}

/// The number of a message's kind, and where its content begins.
fn kind_of(message: &[u8]) -> Result<(u32, Reader<'_>), Error> {
    let mut reader = Reader::new(message);
    match (reader.array()?, reader.u32()?) {
        (2.., kind) => Ok((kind, reader)),
        _ => Err(Error::Malformed),
    }
}

fn explain(error: Error, message: &[u8]) -> FrameError {
    let id = |mut reader: Reader<'_>| reader.array().and_then(|_| reader.u32());
    match (error, kind_of(message)) {
        (Error::Unknown, Ok((kind, reader))) => match (kind, id(reader)) {
            (kind::REQUEST, Ok(id)) => FrameError::NewRequest { id },
            (kind::RESPONSE, Ok(id)) => FrameError::NewResponse { id },
            _ => FrameError::NewMessage,
        },
        _ => FrameError::Malformed,
    }
}

/// Only requests are decoded.
fn decode_request(message: &[u8]) -> Result<Option<Request>, FrameError> {
    match kind_of(message) {
        Ok((kind::REQUEST, mut reader)) => match Request::deserialize(&mut reader) {
            Ok(request) if reader.is_at_end() => Ok(Some(request)),
            Ok(_) => Err(FrameError::Malformed),
            Err(error) => Err(explain(error, message)),
        },
        Ok(_) => Ok(None),
        Err(_) => Err(FrameError::Malformed),
    }
}

/// Returns the message in an unstuffed frame, after a check of its checksum and version.
pub(crate) fn checked(body: &[u8]) -> Result<&[u8], FrameError> {
    if body.len() < MIN_BODY_BYTES {
        return Err(FrameError::Truncated { bytes: body.len() });
    }
    let (covered, checksum) = body.split_at(body.len() - CHECKSUM_BYTES);
    let stated = checksum.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    let computed = CHECKSUM.checksum(covered);
    if stated != computed {
        return Err(FrameError::BadChecksum { stated, computed });
    }
    if covered[0] != VERSION {
        return Err(FrameError::UnknownVersion { found: covered[0] });
    }
    Ok(&covered[1..])
}
