// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's state, and the methods that all parts of its work share.

use alloc::boxed::Box;

use super::budget::TurnError;
use super::config::{Config, News};
use super::connection::{Link, Reply, Sending};
use super::tags::tags;
use crate::export::Export;
use crate::figures::{Counts, Figures};
use crate::journal::{Journal, Kept};
use crate::limits::BACKOFF_NS;
use crate::problem::Problem;
use crate::request::{Failure, Slot};
use crate::saved::SLOTS;
use crate::stream::Driver;

/// A client of one export.
#[derive(Debug)]
pub struct Client {
    pub(super) config: Config,
    pub(super) link: Link,
    pub(super) export: Option<Export>,
    pub(super) slots: Box<[Slot; SLOTS]>,
    /// The tags of drivers' requests in flight.
    pub(super) busy: u128,
    pub(super) sending: Option<Sending>,
    pub(super) reply: Reply,
    /// The read that data arrives for: its tag, and the bytes of its part that have arrived.
    pub(super) reading: Option<(u16, u32)>,
    pub(super) journal: Option<Journal>,
    pub(super) sequence: u64,
    pub(super) cookie: u64,
    pub(super) flush: u64,
    pub(super) now_ns: u64,
    /// The time when bytes last went either way, or the first request was sent.
    pub(super) moved_ns: u64,
    pub(super) backoff_ns: u64,
    /// The connection is to be reset first.
    pub(super) is_stale: bool,
    /// The connection is the previous image's: it continues if its stream was handed over.
    pub(super) is_adopted: bool,
    /// Times of requests count from the first turn on.
    pub(super) is_resumed: bool,
    pub(super) news: Option<News>,
    pub(super) reported: Option<Problem>,
    pub(super) counts: Counts,
}

impl Client {
    /// Returns a client that is not connected.
    pub fn new(config: Config) -> Self {
        let journal = config.is_write_back.then(Journal::new);
        Self {
            config,
            link: Link::Down { until_ns: 0 },
            export: None,
            slots: Box::new([Slot::FREE; SLOTS]),
            busy: 0,
            sending: None,
            reply: Reply::default(),
            reading: None,
            journal,
            sequence: 0,
            cookie: 0,
            flush: 1,
            now_ns: 0,
            moved_ns: 0,
            backoff_ns: BACKOFF_NS,
            is_stale: false,
            is_adopted: false,
            is_resumed: false,
            news: None,
            reported: None,
            counts: Counts::default(),
        }
    }

    /// Returns the export as it was last negotiated; `None` before.
    pub fn export(&self) -> Option<&Export> {
        self.export.as_ref()
    }

    /// Returns its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns whether requests are sent now.
    pub fn is_up(&self) -> bool {
        matches!(self.link, Link::Up)
    }

    /// Returns the number of the driver's requests in flight.
    pub fn in_flight(&self) -> usize {
        self.busy.count_ones() as usize
    }

    /// Returns its state and its counts.
    pub fn figures(&self) -> Figures {
        Figures {
            export_bytes: self.export.map(|export| export.bytes),
            is_up: self.is_up(),
            in_flight: self.in_flight() as u32,
            counts: self.counts,
        }
    }

    /// Takes what has happened to the connection since the last call.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    /// Returns how long ago a time is, in nanoseconds; 0 if it is later than the last turn.
    pub(super) fn waited_ns(&self, since_ns: u64) -> u64 {
        let waited_ns = self.now_ns.wrapping_sub(since_ns);
        if waited_ns > u64::MAX / 2 { 0 } else { waited_ns }
    }

    /// Returns the tags of drivers' requests in flight.
    pub(super) fn tags(&self) -> impl Iterator<Item = u16> + use<> {
        tags(self.busy)
    }

    pub(super) fn slot(&mut self, tag: u16) -> &mut Slot {
        // Tags come from this client's own tables.
        &mut self.slots[usize::from(tag) % SLOTS]
    }

    pub(super) fn free(&mut self, tag: u16) {
        if let (Some(number), Some(journal)) = (self.slot(tag).kept, &mut self.journal) {
            journal.set(number, Kept::Dead);
        }
        *self.slot(tag) = Slot::FREE;
        self.busy &= !1u128.checked_shl(tag.into()).unwrap_or(0);
    }

    pub(super) fn complete<D>(
        &mut self,
        tag: u16,
        result: Result<(), Failure>,
        driver: &mut D,
    ) -> Result<(), TurnError<D::Fault>>
    where
        D: Driver + ?Sized,
    {
        let request = self.slot(tag).request;
        self.counts.add(&request, result);
        self.free(tag);
        driver.complete(tag, result).map_err(TurnError::Driver)
    }

    /// Returns whether each acknowledged change must be stable at once.
    pub(super) fn is_write_through(&self) -> bool {
        self.journal.is_none()
    }
}
