// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work of one turn, and the requests that it is done for.

use super::budget::{Budget, TurnError};
use super::connection::Link;
use super::state::Client;
use super::tags::tags;
use crate::limits::{REQUESTS, TURN_BYTES, TURN_STEPS};
use crate::problem::Problem;
use crate::request::{Failure, Refused, Request, Slot, Stage};
use crate::stream::{Driver, Status, Stream};

impl Client {
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

    /// Drops all requests, because the driver has reset its device. Acknowledged changes are kept.
    pub fn abandon(&mut self) {
        self.is_stale |= self.slots.iter().any(Slot::is_in_flight);
        for tag in 0..REQUESTS as u16 {
            self.free(tag);
        }
    }

    /// Connects, sends and receives as far as it can without waiting, and a bounded number of bytes. Returns when the
    /// next turn is due, beside turns for bytes or room of the stream; `None` if none is.
    ///
    /// # Errors
    /// The driver's fault: all its requests are gone.
    pub fn turn<S, D>(&mut self, now_ns: u64, stream: &mut S, driver: &mut D) -> Result<Option<u64>, D::Fault>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        self.set_clock(now_ns);
        // An image that was handed no stream begins a new connection: the previous one was not ended.
        let was_adopted = core::mem::take(&mut self.is_adopted);
        self.is_stale |= was_adopted && self.is_up() && stream.status() == Status::Closed;
        if core::mem::take(&mut self.is_stale) {
            self.lose(Problem::Reset, stream);
        }
        let mut budget = Budget { bytes: TURN_BYTES, steps: TURN_STEPS };
        let worked = self.expire(stream, driver).and_then(|()| self.work(stream, driver, &mut budget));
        match worked {
            Ok(()) => {}
            Err(TurnError::Server(problem)) => self.lose(problem, stream),
            Err(TurnError::Driver(fault)) => {
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

    /// Fails the requests that have waited too long. The server may still answer one that it has received, so that
    /// connection is ended.
    fn expire<S, D>(&mut self, stream: &mut S, driver: &mut D) -> Result<(), TurnError<D::Fault>>
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
            self.lose(Problem::TimedOut { after_ms: self.config.timeout_ns / 1_000_000 }, stream);
        }
        tags(late).try_for_each(|tag| self.complete(tag, Err(Failure::TimedOut), driver))
    }

    /// Returns the time of the next turn that is due.
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
}
