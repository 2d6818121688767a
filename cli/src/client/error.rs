// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of a client.

use std::fmt;

use thiserror::Error;
use wire::{FrameError, Refusal};

/// The host (or its broker) has closed the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host has closed the connection; it has probably ended")]
pub struct Closed;

/// There is no guest of that name; the message has the hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NotFound(pub String);

/// There is no line to the host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unreachable(pub(super) String);

/// The host did not answer.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("the host did not answer within {seconds:.0} s{damage}{place}")]
pub struct NoAnswer {
    pub(super) seconds: f64,
    pub(super) damage: Damage,
    pub(super) place: String,
}

/// An order was sent, its answer was lost, and to repeat it is not safe.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{reason}; the order may have been carried out or not: see `baton info`, `baton vm list` and `baton events`")]
pub struct Unclear {
    pub(super) reason: String,
    /// The host's report, if it could not read something.
    pub(super) unread: Option<Refusal>,
}

/// The bytes that arrived and were no message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Damaged frames.
    pub frames: u32,
    /// The last one's reason.
    pub last: Option<FrameError>,
    /// Requests that came back: the line echoes.
    pub echoes: u32,
}

impl Damage {
    pub(super) fn note(&mut self, error: FrameError) {
        self.frames = self.frames.saturating_add(1);
        self.last = Some(error);
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.echoes > 0 {
            return f.write_str("; the line echoes what is sent: a terminal or a loopback plug is at its other end");
        }
        match self.last {
            Some(last) => write!(f, "; {} damaged frames came, the last one: {last}", self.frames),
            None => Ok(()),
        }
    }
}
