// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of clients in guests: each has a decoder, a subscription and a queue of its own, as COM2 has.

use alloc::boxed::Box;
use alloc::vec::Vec;

use handover::state::ControlStream;
use session::Grant;
use wire::{Decoder, FrameError, Quota, Refusal, ReplyBody, Request};

use super::outgoing::{Outgoing, Sink};
use crate::arch::{cpu, timer};
use crate::guests::sockets::services::{self, Line};
use crate::guests::sockets::streams::Sent;
use crate::kernel::inherited::ChannelState;

/// Nothing announces that a guest has buffers again: they are polled at this interval.
const RETRY_US: u64 = 2000;

/// The line that a request has come over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineId {
    /// COM2.
    Com2,
    /// That of a client in a guest, by its place.
    Guest(u8),
}

/// A request that is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its line.
    pub line: LineId,
    /// Its number there.
    pub id: u32,
}

/// The answer to a request.
pub type Answer = (Asked, Result<ReplyBody, Refusal>);

/// The line of a client in a guest.
pub struct GuestLine {
    line: &'static Line,
    client: Option<Box<Client>>,
    retry: Option<u64>,
}

/// A client, from its connection to its end.
struct Client {
    /// The number of its stream.
    number: u32,
    decoder: Decoder,
    outgoing: Outgoing,
    refusals: Quota,
    /// The request that the image before has left to be answered.
    request: Option<u32>,
}

/// All lines of clients in guests.
pub fn all() -> Vec<GuestLine> {
    services::resume_all();
    let mut lines: Vec<_> =
        services::lines().iter().map(|line| GuestLine { line, client: None, retry: None }).collect();
    lines.iter_mut().for_each(|line| _ = line.meet());
    lines
}

impl GuestLine {
    /// The requests that clients of this guest may send.
    pub fn grant(&self) -> &'static Grant {
        &self.line.grant
    }

    /// The request that the image before has left to be answered.
    pub fn take_request(&mut self) -> Option<u32> {
        self.client.as_mut()?.request.take()
    }

    /// Begins with a new client, and drops one that has gone. Returns whether there was either.
    pub fn meet(&mut self) -> bool {
        let number = self.line.number();
        if number == self.client.as_ref().map(|client| client.number) {
            return false;
        }
        self.client = number.map(|number| {
            let session = self.line.take_session().unwrap_or_default();
            let (decoder, request) = (Decoder::new(), session.request);
            let outgoing = Outgoing::resume(&session);
            Box::new(Client { number, decoder, outgoing, refusals: Quota::new(), request })
        });
        true
    }

    /// Receives what its client has sent; returns how many bytes.
    pub fn receive(&mut self, into: &mut [u8]) -> usize {
        self.client.as_ref().map_or(0, |client| self.line.receive(client.number, into))
    }

    /// Takes bytes up to the first request, or what else it is, that they complete.
    pub fn push(&mut self, bytes: &mut &[u8]) -> Option<Result<Option<Request>, FrameError>> {
        self.client.as_mut()?.decoder.push_to_host(bytes)
    }

    /// The output to its client.
    pub fn outgoing(&mut self) -> Option<&mut Outgoing> {
        self.client.as_mut().map(|client| &mut client.outgoing)
    }

    /// Returns how many refusals were left out, if one may be sent now.
    pub fn take_refusal(&mut self, now: u64, interval: u64) -> Option<u32> {
        self.client.as_mut()?.refusals.take(now, interval)
    }

    /// Queues what is new, and sends what its client takes.
    pub fn pump(&mut self) {
        if let Some(client) = &mut self.client {
            client.outgoing.pump(&mut To { line: self.line, number: client.number });
        }
        let is_full = self.line.flush() != Sent::All;
        let is_waiting = self.client.as_ref().is_some_and(|client| !client.outgoing.is_quiet());
        self.retry = (is_full || is_waiting).then(|| cpu::tsc() + timer::us_to_ticks(RETRY_US));
    }

    /// Returns when to poll for buffers again.
    pub fn alarm(&self) -> Option<u64> {
        self.retry
    }

    /// Lets what the client sends wait, as soon as nothing is on its way. Returns whether it does.
    pub fn hold(&mut self) -> bool {
        let is_quiet = |client: &Client| client.decoder.is_between_frames() && client.outgoing.is_quiet();
        self.client.as_deref().is_none_or(is_quiet) && self.line.hold()
    }

    /// Receives again what the client sends.
    pub fn release(&self) {
        self.line.release();
    }

    /// Returns the stream and its session, for the next image; `request`: the one that it is to answer. `None` if there
    /// is none, or something is on its way.
    pub fn save(&self, request: Option<u32>) -> Option<ControlStream> {
        let client = self.client.as_deref()?;
        let is_quiet = client.decoder.is_between_frames() && client.outgoing.is_quiet();
        let session: ChannelState = client.outgoing.channel_state(request);
        is_quiet.then(|| self.line.save(client.number, &session)).flatten()
    }
}

/// The way to one client.
struct To {
    line: &'static Line,
    number: u32,
}

impl Sink for To {
    fn is_there(&self) -> bool {
        true
    }

    fn offer(&mut self, bytes: &[u8]) -> usize {
        self.line.offer(self.number, bytes)
    }

    /// The guest's vCPU wakes the CPU that serves this.
    fn watch(&mut self, _: bool) {}
}
