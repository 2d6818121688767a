// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol without an allocator, for a host that has ended: small buffers, few requests.
//!
//! [`Listener`] understands the questions that need no more than numbers, and of all others the number that their
//! answer must carry. [`Reply`] writes answers that [`crate::Decoder`] reads as any others: what it writes is compared
//! with [`crate::encode`]'s in tests.

use serde::{Deserialize, Serialize, Serializer};

use crate::decode::{checked, kind, unstuff};
use crate::encode::encode_value;
use crate::{EncodeError, FrameError, LogRecord, RefusalCode, Virtualization};
use cbor::{Error, Reader};

/// The longest frame that is listened to; longer ones are no question of these.
pub const MAX_QUESTION_BYTES: usize = 64;

/// Numbers of the messages in their enumerations. Tests hold them to the messages.
mod variant {
    pub const OK: u32 = 0;
    pub const REFUSED: u32 = 1;

    pub const ASK_INFO: u32 = 0;
    pub const ASK_LOG: u32 = 11;
    pub const ASK_POWER_OFF: u32 = 14;

    pub const DONE: u32 = 0;
    pub const INFO: u32 = 1;
    pub const LOG: u32 = 6;
}

/// A question, as far as it is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Identifier that the answer carries.
    pub id: u32,
    /// The request's body.
    pub asked: Asked,
}

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// [`crate::RequestBody::Info`].
    Info,
    /// [`crate::RequestBody::Log`].
    Log {
        /// The first record requested.
        from_sequence: u64,
        /// The most records requested.
        limit: u16,
    },
    /// [`crate::RequestBody::PowerOff`].
    PowerOff,
    /// Anything else.
    Other,
}

/// Finds questions in a stream of bytes.
pub struct Listener {
    buffer: [u8; MAX_QUESTION_BYTES],
    filled_bytes: usize,
    is_skipping: bool,
}

impl Default for Listener {
    fn default() -> Self {
        Self::new()
    }
}

impl Listener {
    /// Creates one at the beginning of a stream.
    pub const fn new() -> Self {
        Self { buffer: [0; MAX_QUESTION_BYTES], filled_bytes: 0, is_skipping: false }
    }

    /// Takes the next byte of the stream; returns the question (or error) that it completes.
    pub fn push_byte(&mut self, byte: u8) -> Option<Result<Question, FrameError>> {
        if byte != 0 {
            match self.buffer.get_mut(self.filled_bytes) {
                Some(place) => {
                    *place = byte;
                    self.filled_bytes += 1;
                }
                None => self.is_skipping = true,
            }
            return None;
        }
        let bytes = core::mem::take(&mut self.filled_bytes);
        if core::mem::take(&mut self.is_skipping) {
            return Some(Err(FrameError::Oversize));
        }
        (bytes > 0).then(|| question(&mut self.buffer[..bytes]))
    }
}

fn question(stuffed: &mut [u8]) -> Result<Question, FrameError> {
    let bytes = stuffed.len();
    let body_bytes = unstuff(stuffed).ok_or(FrameError::Garbage { bytes })?;
    let message = checked(&stuffed[..body_bytes])?;
    read(message).map_err(|_| FrameError::Malformed)
}

fn read(message: &[u8]) -> Result<Question, Error> {
    let mut reader = Reader::new(message);
    match (reader.array()?, reader.u32()?, reader.array()?) {
        (2, kind::REQUEST, 2..) => {}
        _ => return Err(Error::Malformed),
    }
    let id = reader.u32()?;
    Ok(Question { id, asked: asked(&mut reader)? })
}

/// A request without fields is its number, any other a list of its number and its fields.
fn asked(reader: &mut Reader<'_>) -> Result<Asked, Error> {
    if !reader.is_at_array() {
        return match reader.u32()? {
            variant::ASK_INFO => Ok(Asked::Info),
            variant::ASK_POWER_OFF => Ok(Asked::PowerOff),
            _ => Ok(Asked::Other),
        };
    }
    reader.array()?;
    if reader.u32()? != variant::ASK_LOG {
        return Ok(Asked::Other);
    }
    let (from_sequence, limit) = Deserialize::deserialize(reader)?;
    Ok(Asked::Log { from_sequence, limit })
}

/// Content of [`crate::HostInfo`], borrowed; its fields in its order.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs, reason = "they are HostInfo's")]
pub struct BorrowedInfo<'a> {
    pub version: &'a str,
    pub image_bytes: u64,
    pub cpus: u32,
    pub memory_total_bytes: u64,
    pub memory_free_bytes: u64,
    pub host_overhead_bytes: u64,
    pub uptime_ns: u64,
    pub virtualization: Virtualization,
    pub features: &'a [&'a str],
    pub apic_mode: crate::ApicMode,
    pub tsc_hz: u64,
    pub generation: u64,
    pub build: &'a str,
    pub security_version: u32,
    pub permits_downgrade: bool,
    pub oldest_handover: u32,
    pub newest_handover: u32,
    pub trusted_keys: &'a [&'a str],
    pub unclaimed_nmis: u64,
    pub unexpected_interrupts: u64,
    pub last_unexpected_vector: Option<u8>,
    pub signer: Option<&'a str>,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// [`crate::ReplyBody::Done`].
    Done,
    /// [`crate::ReplyBody::Info`].
    Info(BorrowedInfo<'a>),
    /// [`crate::ReplyBody::Log`].
    Log {
        /// The records.
        records: &'a [LogRecord<'a>],
        /// Ask from here on.
        next_sequence: u64,
    },
    /// [`crate::Refusal`].
    Refused {
        /// For programs.
        code: RefusalCode,
        /// The reason, for people.
        reason: &'a str,
        /// The remedy, for people.
        hint: &'a str,
    },
}

impl Reply<'_> {
    /// Writes the answer to question `id` into `buffer` as it goes onto the stream, and returns the bytes written.
    pub fn encode<'b>(&self, id: u32, buffer: &'b mut [u8]) -> Result<&'b [u8], EncodeError> {
        use variant::{DONE, INFO, LOG, OK, REFUSED};
        match self {
            Self::Done => response(id, OK, &Unit(DONE), buffer),
            Self::Info(info) => response(id, OK, &Variant(INFO, info), buffer),
            Self::Log { records, next_sequence } => response(id, OK, &Variant(LOG, &(records, next_sequence)), buffer),
            Self::Refused { code, reason, hint } => response(id, REFUSED, &(code, reason, hint), buffer),
        }
    }
}

fn response<'b, T: Serialize>(
    id: u32,
    result: u32,
    content: &T,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], EncodeError> {
    encode_value(&Variant(kind::RESPONSE, &(id, Variant(result, content))), buffer)
}

/// A variant without fields.
struct Unit(u32);

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit_variant("", self.0, "")
    }
}

/// A variant, and its content.
struct Variant<'a, T>(u32, &'a T);

impl<T: Serialize> Serialize for Variant<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_variant("", self.0, "", self.1)
    }
}
