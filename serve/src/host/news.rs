// SPDX-License-Identifier: MIT OR Apache-2.0
//! News that clients are notified of at once.

use std::sync::Arc;

use super::records::Kept;
use super::snapshot::Status;
use crate::updates::Update;

/// News that wait for a slow client; older ones are lost to it.
pub const NEWS: usize = 1024;

/// An event that clients are notified of at once.
#[derive(Clone, Debug)]
pub enum News {
    /// The host was read, or its line has come or gone.
    Status(Status),
    /// A record of the host's log, with its number.
    Log(Arc<str>, Kept<wire::LogRecord<'static>>),
    /// An event.
    Event(Arc<str>, Kept<wire::Event>),
    /// Progress of an update.
    Update(Update),
}
