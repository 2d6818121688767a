// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection: from the first attempt to its end, and the next one.

use super::budget::{Budget, TurnError};
use super::config::News;
use super::connection::{Link, Reply};
use super::state::Client;
use super::tags::{AGAIN, OWN_FLUSH};
use crate::export::Export;
use crate::handshake::Handshake;
use crate::limits::{BACKOFF_MOST_NS, BACKOFF_NS, HANDSHAKE_NS};
use crate::problem::Problem;
use crate::request::{Slot, Stage};
use crate::stream::{Driver, Status, Stream};

impl Client {
    /// Works on the connection until nothing moves, or the budget is spent.
    pub(super) fn work<S, D>(
        &mut self,
        stream: &mut S,
        driver: &mut D,
        budget: &mut Budget,
    ) -> Result<(), TurnError<D::Fault>>
    where
        S: Stream + ?Sized,
        D: Driver + ?Sized,
    {
        self.connect(stream)?;
        if !self.is_up() {
            return Ok(());
        }
        loop {
            budget.steps -= 1;
            let has_received = self.receive(stream, driver, budget)?;
            let has_sent = self.send(stream, driver, budget)?;
            if has_received || has_sent {
                self.moved_ns = self.now_ns;
            }
            if budget.is_spent() {
                return Ok(());
            }
            if !has_received && !has_sent {
                break;
            }
        }
        let silence_ns = self.waited_ns(self.moved_ns);
        if self.slots.iter().any(Slot::is_in_flight) && silence_ns >= self.silence_ns() {
            return Err(Problem::TimedOut { after_ms: silence_ns / 1_000_000 }.into());
        }
        if stream.status() == Status::Open { Ok(()) } else { Err(Problem::Closed.into()) }
    }

    /// Returns half of the time-out: a connection on which nothing moves is replaced once before requests fail.
    pub(super) fn silence_ns(&self) -> u64 {
        self.config.timeout_ns / 2
    }

    /// Returns the longest time for the connection that is next to be negotiated. It doubles while no request is
    /// answered: a server that is merely slow would otherwise begin again for ever.
    fn patience_ns(&self) -> u64 {
        let doubled = self.backoff_ns.saturating_mul(HANDSHAKE_NS / BACKOFF_NS);
        doubled.min(self.silence_ns()).max(HANDSHAKE_NS)
    }

    /// Takes a connection as far towards the first request as it goes now.
    fn connect<S: Stream + ?Sized>(&mut self, stream: &mut S) -> Result<(), Problem> {
        let patience_ns = self.patience_ns();
        let slow = Err(Problem::SlowHandshake { after_s: patience_ns / 1_000_000_000 });
        if let Link::Down { until_ns } = self.link {
            if self.now_ns < until_ns {
                return Ok(());
            }
            stream.open();
            self.link = Link::Opening { until_ns: self.now_ns.saturating_add(patience_ns) };
        }
        if let Link::Opening { until_ns } = self.link {
            match stream.status() {
                Status::Open => self.link = Link::Negotiating { until_ns, handshake: Handshake::new() },
                Status::Connecting if self.now_ns < until_ns => {}
                Status::Connecting => return slow,
                Status::Closed => return Err(Problem::Refused),
            }
        }
        if let Link::Negotiating { until_ns, handshake } = &mut self.link {
            match handshake.turn(&self.config.export, stream)? {
                Some(export) => self.accept(export)?,
                None if stream.status() != Status::Open => return Err(Problem::Closed),
                None if self.now_ns >= *until_ns => return slow,
                None => {}
            }
        }
        Ok(())
    }

    fn accept(&mut self, export: Export) -> Result<(), Problem> {
        let changes = !self.config.is_read_only;
        if changes && export.is_read_only() {
            return Err(Problem::ReadOnly);
        }
        let is_stable = export.can_flush() || export.has_fua() && self.is_write_through();
        if changes && !is_stable {
            return Err(Problem::Volatile);
        }
        if let Some(before) = self.export.filter(|before| !export.replaces(before)) {
            return Err(Problem::Changed { from: before.bytes, to: export.bytes });
        }
        (self.export, self.link, self.moved_ns) = (Some(export), Link::Up, self.now_ns);
        (self.news, self.reported) = (Some(News::Up(export)), None);
        self.counts.connections += 1;
        Ok(())
    }

    /// Gives the connection up: all that is unanswered is sent again on the next one.
    pub(super) fn lose<S: Stream + ?Sized>(&mut self, problem: Problem, stream: &mut S) {
        stream.reset();
        // Its driver does not wait for a server that has done nothing wrong.
        let pause_ns = if problem == Problem::Reset { 0 } else { self.backoff_ns };
        self.backoff_ns = (self.backoff_ns * 2).min(BACKOFF_MOST_NS);
        self.link = Link::Down { until_ns: self.now_ns.saturating_add(pause_ns) };
        self.requeue();
        if problem != Problem::Reset && self.reported != Some(problem) {
            (self.news, self.reported) = (Some(News::Down(problem)), Some(problem));
        }
    }

    /// Notes that a request was answered: the server works.
    pub(super) fn note_answer(&mut self) {
        self.backoff_ns = BACKOFF_NS;
    }

    /// Queues all unanswered requests again.
    pub(super) fn requeue(&mut self) {
        (self.sending, self.reply, self.reading) = (None, Reply::default(), None);
        if let Some(journal) = &mut self.journal {
            journal.restart();
        }
        // Parts that were answered are stable with FUA, or in the journal. Else they are sent again.
        let is_kept = self.journal.is_some() || self.export.is_some_and(|export| export.has_fua());
        for slot in self.slots.iter_mut().filter(|slot| slot.stage != Stage::Free) {
            (slot.stage, slot.kept, slot.is_flushing) = (Stage::Queued, None, false);
            if slot.request.command.is_change() && !is_kept {
                slot.done = 0;
            }
        }
        (*self.slot(OWN_FLUSH), *self.slot(AGAIN)) = (Slot::FREE, Slot::FREE);
    }
}
