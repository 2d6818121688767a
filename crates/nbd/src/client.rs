// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client: requests in flight, and the connection that they are sent on.

mod link;
mod receive;
mod resume;
mod send;

use alloc::boxed::Box;
use alloc::string::String;

use crate::export::Export;
use crate::journal::{Journal, Kept};
use crate::limits::{REQUESTS, TURN_BYTES, TURN_STEPS};
use crate::problem::Problem;
use crate::request::{Command, Failure, Refused, Request, Slot, Stage};
use crate::saved::SLOTS;
use crate::stream::{Driver, Stream};

use self::link::Link;
use self::receive::Reply;
use self::send::Sending;

/// Tags of the client's own requests: a flush that makes room in the journal, and what is written again.
const OWN_FLUSH: u16 = REQUESTS as u16;
const AGAIN: u16 = OWN_FLUSH + 1;

/// What a client is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The export's name, [`NAME_BYTES`](crate::NAME_BYTES) at most.
    pub export: String,
    /// It changes nothing.
    pub is_read_only: bool,
    /// Writes are acknowledged before they are stable.
    pub is_write_back: bool,
    /// A request fails after so long without an answer.
    pub timeout_ns: u64,
}

/// What has happened to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The export is there.
    Up(Export),
    /// It is not, for this reason. It is reported once, however often the client tries again.
    Down(Problem),
}

/// A client of one export.
#[derive(Debug)]
pub struct Client {
    config: Config,
    link: Link,
    export: Option<Export>,
    slots: Box<[Slot; SLOTS]>,
    /// The tags of drivers' requests in flight.
    busy: u128,
    sending: Option<Sending>,
    reply: Reply,
    /// The read whose data arrives: its tag, and the bytes of its part that have.
    reading: Option<(u16, u32)>,
    journal: Option<Journal>,
    sequence: u64,
    cookie: u64,
    flush: u64,
    now_ns: u64,
    /// When bytes last went either way, or the first request was sent.
    moved_ns: u64,
    backoff_ns: u64,
    /// The connection is to be reset first.
    is_stale: bool,
    /// Times of requests count from the first turn on.
    is_resumed: bool,
    news: Option<News>,
    reported: Option<Problem>,
}

/// What ends a turn.
enum Trouble<F> {
    Server(Problem),
    Driver(F),
}

impl<F> From<Problem> for Trouble<F> {
    fn from(problem: Problem) -> Self {
        Self::Server(problem)
    }
}

/// What is left of a turn.
struct Budget {
    bytes: usize,
    steps: u32,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.bytes == 0 || self.steps == 0
    }

    fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Client {
    /// A client that is not connected.
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
            backoff_ns: crate::limits::BACKOFF_NS,
            is_stale: false,
            is_resumed: false,
            news: None,
            reported: None,
        }
    }

    /// The export as it was last negotiated; `None` before.
    pub fn export(&self) -> Option<&Export> {
        self.export.as_ref()
    }

    /// What it is to do.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether requests are sent now.
    pub fn is_up(&self) -> bool {
        matches!(self.link, Link::Up)
    }

    /// Requests of the driver that are in flight.
    pub fn in_flight(&self) -> usize {
        self.busy.count_ones() as usize
    }

    /// Takes what has happened to the connection since the last call.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.take()
    }

    /// Accepts a request, which [`turn`](Self::turn) completes. Tags are less than [`REQUESTS`].
    ///
    /// # Errors
    /// [`Refused`].
    pub fn submit(&mut self, tag: u16, request: Request, now_ns: u64) -> Result<(), Refused> {
        self.set_clock(now_ns);
        let slot = self.slots[..REQUESTS].get_mut(usize::from(tag)).ok_or(Refused::NoSuchTag)?;
        if slot.stage != Stage::Free {
            return Err(Refused::Busy);
        }
        *slot = Slot { stage: Stage::Queued, request, sequence: self.sequence, since_ns: now_ns, ..Slot::FREE };
        self.sequence += 1;
        self.busy |= 1 << tag;
        Ok(())
    }

    /// The driver has reset its device: its requests are gone. What is acknowledged is kept.
    pub fn abandon(&mut self) {
        self.is_stale |= self.slots.iter().any(Slot::is_in_flight);
        for tag in 0..REQUESTS as u16 {
            self.free(tag);
        }
    }

    /// Connects, sends and receives as far as it can without waiting, and a bounded number of bytes. Returns when the
    /// next turn is due, beside those that bytes or room of the stream are a reason for; `None` if no time is.
    ///
    /// # Errors
    /// The driver's fault: all its requests are gone.
    pub fn turn<S, D>(&mut self, now_ns: u64, stream: &mut S, driver: &mut D) -> Result<Option<u64>, D::Fault>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        self.set_clock(now_ns);
        if core::mem::take(&mut self.is_stale) {
            self.lose(Problem::Reset, stream);
        }
        let mut budget = Budget { bytes: TURN_BYTES, steps: TURN_STEPS };
        let worked = self.expire(stream, driver).and_then(|()| self.work(stream, driver, &mut budget));
        match worked {
            Ok(()) => {}
            Err(Trouble::Server(problem)) => self.lose(problem, stream),
            Err(Trouble::Driver(fault)) => {
                self.abandon();
                return Err(fault);
            }
        }
        Ok(if budget.is_spent() { Some(now_ns) } else { self.next() })
    }

    fn set_clock(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        if core::mem::take(&mut self.is_resumed) {
            // They hold how long each had waited, as a negative number.
            self.slots.iter_mut().for_each(|slot| slot.since_ns = slot.since_ns.wrapping_add(now_ns));
            self.moved_ns = now_ns;
        }
    }

    /// Fails the requests that have waited too long. One that the server has would be answered later: its connection is
    /// of no use any more.
    fn expire<S, D>(&mut self, stream: &mut S, driver: &mut D) -> Result<(), Trouble<D::Fault>>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        let is_late = |tag: &u16| self.waited_ns(self.slots[usize::from(*tag)].since_ns) >= self.config.timeout_ns;
        let late = self.tags().filter(is_late).fold(0u128, |all, tag| all | 1 << tag);
        if late == 0 {
            return Ok(());
        }
        if tags(late).any(|tag| self.slots[usize::from(tag)].is_in_flight()) {
            self.lose(Problem::Silent { after_ms: self.config.timeout_ns / 1_000_000 }, stream);
        }
        tags(late).try_for_each(|tag| self.complete(tag, Err(Failure::TimedOut), driver))
    }

    /// When something is due.
    fn next(&self) -> Option<u64> {
        let waited = self.tags().map(|tag| self.waited_ns(self.slots[usize::from(tag)].since_ns)).max();
        let expires = waited.map(|ns| self.now_ns.saturating_add(self.config.timeout_ns.saturating_sub(ns)));
        let is_waiting = self.slots.iter().any(Slot::is_in_flight);
        let link = match &self.link {
            Link::Down { until_ns } | Link::Opening { until_ns } | Link::Negotiating { until_ns, .. } => {
                Some(*until_ns)
            }
            Link::Up => is_waiting.then(|| self.moved_ns.saturating_add(self.silence_ns())),
        };
        [expires, link].into_iter().flatten().min()
    }

    /// How long ago a time is; 0 if it is later than the last turn.
    fn waited_ns(&self, since_ns: u64) -> u64 {
        let waited_ns = self.now_ns.wrapping_sub(since_ns);
        if waited_ns > u64::MAX / 2 { 0 } else { waited_ns }
    }

    /// Drivers' requests in flight.
    fn tags(&self) -> impl Iterator<Item = u16> + use<> {
        tags(self.busy)
    }

    fn slot(&mut self, tag: u16) -> &mut Slot {
        // Tags come from this client's own tables.
        &mut self.slots[usize::from(tag) % SLOTS]
    }

    fn free(&mut self, tag: u16) {
        if let (Some(number), Some(journal)) = (self.slot(tag).kept, &mut self.journal) {
            journal.set(number, Kept::Dead);
        }
        *self.slot(tag) = Slot::FREE;
        self.busy &= !1u128.checked_shl(tag.into()).unwrap_or(0);
    }

    fn complete<D>(&mut self, tag: u16, result: Result<(), Failure>, driver: &mut D) -> Result<(), Trouble<D::Fault>>
    where
        D: Driver + ?Sized,
    {
        self.free(tag);
        driver.complete(tag, result).map_err(Trouble::Driver)
    }

    /// Whether what the server acknowledges is to be stable at once.
    fn is_write_through(&self) -> bool {
        self.journal.is_none()
    }
}

fn tags(mut set: u128) -> impl Iterator<Item = u16> {
    core::iter::from_fn(move || {
        let tag = (set != 0).then(|| set.trailing_zeros() as u16)?;
        set &= set - 1;
        Some(tag)
    })
}

/// Whether a request is one to flush, by which nothing is read or changed.
fn is_flush(slot: &Slot) -> bool {
    slot.command() == Command::Flush
}
