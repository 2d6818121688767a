// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's state as plain data, from which another one goes on.

use crate::limits::REQUESTS;

/// A client without its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedClient {
    /// The export's bytes, smallest block, largest payload and flags; all 0 if none was negotiated.
    pub bytes: u64,
    /// Its smallest block.
    pub block: u32,
    /// Its largest payload.
    pub payload: u32,
    /// Its transmission flags.
    pub flags: u16,
    /// The connection is in the transmission phase: it continues if its stream is handed over.
    pub is_connected: bool,
    /// The tag of the request that is being sent, and the bytes of header and data that are sent; or
    /// [`SavedClient::NONE`].
    pub sending: u16,
    /// Those bytes.
    pub sent: u32,
    /// The tag of the read that data arrives for, and the bytes that have arrived; [`SavedClient::NONE`].
    pub reading: u16,
    /// Those bytes.
    pub read: u32,
    /// The part of a reply that has arrived.
    pub reply: [u8; 16],
    /// Its bytes.
    pub reply_bytes: u8,
    /// The next request's number, the next message's and the next flush's.
    pub sequence: u64,
    /// The next message's.
    pub cookie: u64,
    /// The next flush's.
    pub flush: u64,
}

impl SavedClient {
    /// No tag.
    pub const NONE: u16 = 0xffff;
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedRequest {
    /// Its tag; the client's own requests follow those of drivers.
    pub tag: u16,
    /// 0 read, 1 write, 2 flush, 3 trim, 4 write zeroes, 5 the same where storage may be freed.
    pub command: u8,
    /// 1 it waits, 2 it is being sent, 3 it is sent.
    pub stage: u8,
    /// Its data is answered, and made stable by a flush of its own.
    pub is_flushing: bool,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Those that are answered.
    pub done: u32,
    /// Those of its part that is being sent or unanswered.
    pub part: u32,
    /// Its place in the order.
    pub sequence: u64,
    /// The cookie that its reply must have.
    pub cookie: u64,
    /// The time that it has waited, in nanoseconds.
    pub waited_ns: u64,
}

/// A change in the journal. Its data follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedWrite {
    /// The command, as in [`SavedRequest::command`].
    pub command: u8,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
}

impl SavedWrite {
    /// Returns the number of bytes of its data in the journal.
    pub fn data_bytes(&self) -> usize {
        if self.command == 1 { self.bytes as usize } else { 0 }
    }
}

/// No client can have made this state; the field, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit(pub &'static str, pub &'static str);

/// Requests of a client in all: those of its driver, a flush of its own, and what it writes again.
pub(crate) const SLOTS: usize = REQUESTS + 2;
