// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a connection ended.

use core::fmt;

use crate::limits::{BLOCK_BYTES_MOST, OPTION_BYTES, OPTION_REPLIES};

/// Why a connection ended, or was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No server accepts the connection.
    Refused,
    /// The server has ended it.
    Closed,
    /// Connecting and negotiating took too long.
    SlowHandshake {
        /// Seconds.
        after_s: u64,
    },
    /// Nothing was sent or received for this time, with requests in flight.
    TimedOut {
        /// Milliseconds.
        after_ms: u64,
    },
    /// The driver has reset its device: the results of its requests are not used.
    Reset,
    /// The greeting is not that of a server with the fixed newstyle negotiation.
    Greeting,
    /// A reply to an option is of no known format, or of another option.
    OptionReply,
    /// A reply to an option is too long, or there are too many.
    LongOption,
    /// The server refuses the export, with this type of reply.
    NoExport {
        /// Without the bit of all errors.
        error: u32,
    },
    /// The server accepts the export and does not describe it.
    NoDescription,
    /// The export's size is no size.
    Size(u64),
    /// The block sizes are no powers of two, contradict each other, or are too large.
    BlockSize {
        /// The smallest.
        minimum: u32,
        /// The largest payload.
        maximum: u32,
    },
    /// The export is read-only, and the device is not.
    ReadOnly,
    /// The server can make nothing stable: it offers neither FUA nor flushes.
    Volatile,
    /// The export is smaller than it was, or its server can do less.
    Changed {
        /// Its bytes before.
        from: u64,
        /// And now.
        to: u64,
    },
    /// A reply does not begin as one.
    ReplyMagic(u32),
    /// A reply is to no request that is in flight.
    Cookie(u64),
    /// The server is about to end.
    ShuttingDown,
    /// The server cannot write what it had acknowledged again.
    NotWrittenAgain {
        /// Its error number.
        error: u32,
    },
    /// The server cannot flush.
    NotFlushed {
        /// Its error number.
        error: u32,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("no server accepts the connection; start the NBD server"),
            Self::Closed => f.write_str("the server has closed the connection"),
            Self::SlowHandshake { after_s } => write!(f, "the server has not negotiated within {after_s} s"),
            Self::TimedOut { after_ms } => write!(f, "the server has not answered for {after_ms} ms"),
            Self::Reset => f.write_str("the driver has reset its device"),
            Self::Greeting => f.write_str("this is no NBD server with the fixed newstyle negotiation"),
            Self::OptionReply => f.write_str("a reply to NBD_OPT_GO is malformed"),
            Self::LongOption => {
                write!(f, "replies to NBD_OPT_GO of over {OPTION_BYTES} bytes, or over {OPTION_REPLIES} of them")
            }
            Self::NoExport { error: 5 } => f.write_str("the server requires TLS, which this client has not"),
            Self::NoExport { error: 6 } => f.write_str("the server has no such export; name one that it lists"),
            Self::NoExport { error } => write!(f, "the server refuses the export (reply error {error})"),
            Self::NoDescription => f.write_str("the server does not state the export's size"),
            Self::Size(bytes) => write!(f, "the export has {bytes} bytes"),
            Self::BlockSize { minimum, maximum } => write!(
                f,
                "blocks of {minimum} and payloads of {maximum} bytes: blocks of at most {BLOCK_BYTES_MOST} are expected"
            ),
            Self::ReadOnly => f.write_str("the export is read-only; set read-only = true"),
            Self::Volatile => f.write_str("the server offers no FUA or flush that this needs; use one that does"),
            Self::Changed { from, to } => {
                write!(f, "the export had {from} bytes and has {to}, or its server can do less: it may be another one")
            }
            Self::ReplyMagic(magic) => write!(f, "a reply begins with {magic:#x}"),
            Self::Cookie(cookie) => write!(f, "a reply to request {cookie:#x}, which is not in flight"),
            Self::ShuttingDown => f.write_str("the server is about to end"),
            Self::NotWrittenAgain { error } => {
                write!(f, "error {error} where acknowledged data is written again; check the server's storage")
            }
            Self::NotFlushed { error } => write!(f, "error {error} of a flush; check the server's storage"),
        }
    }
}

impl core::error::Error for Problem {}
