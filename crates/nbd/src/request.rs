// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests, and what became of them.

/// A command to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Data.
    Read,
    /// Data is stored.
    Write,
    /// Everything that was acknowledged becomes stable.
    Flush,
    /// Data is no longer needed. A server without this command does nothing.
    Trim,
    /// Zeroes are stored.
    WriteZeroes {
        /// The server may free the storage.
        may_trim: bool,
    },
}

impl Command {
    /// Returns whether it changes what reads return.
    pub(crate) fn is_change(self) -> bool {
        matches!(self, Self::Write | Self::WriteZeroes { .. })
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 2,
            Self::Trim => 3,
            Self::WriteZeroes { may_trim: false } => 4,
            Self::WriteZeroes { may_trim: true } => 5,
        }
    }

    pub(crate) fn of(number: u8) -> Option<Self> {
        let all = [Self::Read, Self::Write, Self::Flush, Self::Trim];
        let zeroes = [false, true].map(|may_trim| Self::WriteZeroes { may_trim });
        all.into_iter().chain(zeroes).find(|command| command.number() == number)
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// The first byte; 0 for a flush.
    pub offset: u64,
    /// Its bytes; 0 for a flush.
    pub bytes: u32,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server's error number.
    Server(u32),
    /// There was no answer in time, on any connection.
    TimedOut,
    /// It is not in the export, or not a number of its blocks.
    Range,
    /// The export is read-only.
    ReadOnly,
}

/// Why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No request can have this tag.
    NoSuchTag,
    /// A request with this tag is in flight.
    Busy,
}

/// The progress of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is none.
    #[default]
    Free,
    /// It waits to be sent.
    Queued,
    /// It is being sent.
    Sending,
    /// It is sent, and unanswered.
    Sent,
}

impl Stage {
    pub const ALL: [Self; 4] = [Self::Free, Self::Queued, Self::Sending, Self::Sent];
}

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub stage: Stage,
    pub request: Request,
    /// Bytes that are answered, and those of the part that is being sent or unanswered.
    pub done: u32,
    pub part: u32,
    /// Its data is answered, and made stable by a flush of its own.
    pub is_flushing: bool,
    /// Requests are sent in this order.
    pub sequence: u64,
    /// The cookie that its reply must have.
    pub cookie: u64,
    /// The time when it was submitted.
    pub since_ns: u64,
    /// The journal's number of the part, where it is kept.
    pub kept: Option<u64>,
    /// The number of the flush that it is.
    pub flush: u64,
}

impl Slot {
    pub const FREE: Self = Self {
        stage: Stage::Free,
        request: Request { command: Command::Flush, offset: 0, bytes: 0 },
        done: 0,
        part: 0,
        is_flushing: false,
        sequence: 0,
        cookie: 0,
        since_ns: 0,
        kept: None,
        flush: 0,
    };

    pub fn is_in_flight(&self) -> bool {
        matches!(self.stage, Stage::Sending | Stage::Sent)
    }

    /// Returns the command that is sent for it now.
    pub fn command(&self) -> Command {
        if self.is_flushing { Command::Flush } else { self.request.command }
    }

    /// Returns whether a flush is sent for it now, which reads and changes nothing.
    pub fn is_flush(&self) -> bool {
        self.command() == Command::Flush
    }
}
