// SPDX-License-Identifier: MIT OR Apache-2.0
//! Content and size of a frame.

use serde::{Deserialize, Serialize};

use crate::{Request, Response, Stream};

/// Version of the message format: of the frame, and of the way in which messages are encoded. Messages grow without a
/// new one: fields and variants are added at the end (see the crate's description).
pub const VERSION: u8 = 5;
/// The longest time in seconds for the confirmation of an update: a day.
pub const MAX_CONFIRM_SECONDS: u32 = 86_400;

/// The longest frame on the stream in bytes: stuffing, checksum and delimiter included.
pub const MAX_FRAME_BYTES: usize = 4096;

/// The longest name of a virtual machine in bytes (the bundle's limit).
pub const MAX_NAME_BYTES: usize = 32;

/// The longest text of a log record in bytes; see [`crate::bounded`].
pub const MAX_TEXT_BYTES: usize = 1024;

/// The longest reason, hint or module name in bytes.
pub const MAX_REASON_BYTES: usize = 256;

/// The most console bytes one message carries, either way.
pub const MAX_CONSOLE_BYTES: usize = 1024;

/// The longest time that a machine is held for a client without requests, in milliseconds.
pub const MAX_HOLD_MS: u32 = 60_000;

/// The most bytes of the configuration that one message carries.
pub const MAX_PAGE_BYTES: usize = 3072;

/// The most bytes of a file that one message carries: what a frame has room for.
pub const MAX_UPLOAD_BYTES: usize = 4032;

/// The same of a packed piece.
pub const MAX_PACKED_BYTES: usize = 4024;

/// The most bytes that a packed piece unpacks to: a host does so between two turns of its guests.
pub const MAX_UNPACKED_BYTES: u32 = 64 << 10;

/// Bytes of the checksum at the end of a frame.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// The checksum of frames.
pub(crate) use checksum::CRC_32 as CHECKSUM;

/// One message with its kind. Both directions share it, so that one decoder serves both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frame<'a> {
    /// Tool to host.
    Request(Request),
    /// Host to tool: the answer to one request.
    Response(Response),
    /// Host to tool, unasked: what was subscribed to.
    Stream(Stream<'a>),
}
