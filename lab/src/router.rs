// SPDX-License-Identifier: MIT OR Apache-2.0
//! The broker's routing of messages, without its sockets.
//!
//! - A client's request goes to the host under a number of ours; the host's response goes back under the client's.
//! - Messages that the host sends unasked go to their subscribers. The host gets the union of all subscriptions.
//! - Nothing a client sends reaches the host before it was decoded: garbage ends that client's connection, with the
//!   reason, and the host never notices. A client that does not read what it asked for is dropped as well.
//! - Until the host has answered for the first time, requests wait (it is booting), and the greeting is repeated.

use std::collections::{BTreeMap, VecDeque};

use wire::{
    Decoder, Frame, FrameError, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response, Stream, Subscription,
};

use super::What;
use outbox::{Outbox, encoded};

mod backlog;
mod host_side;
mod outbox;
#[cfg(test)]
mod tests;

use backlog::Backlog;

/// Requests of one client that may wait for an answer.
const MAX_PENDING: usize = 64;

/// A connection, by a number that is never used again.
pub(super) type ClientId = u64;

/// A client's connection.
#[derive(Default)]
pub(super) struct Client {
    decoder: Box<Decoder>,
    subscription: Subscription,
    /// The guests whose consoles it wants; empty: all.
    consoles_of: Vec<String>,
    /// The bytes to send to it.
    pub outbox: Outbox,
    /// True if it is dropped once its outbox is empty.
    pub is_leaving: bool,
}

impl Client {
    /// Returns the streams and the guests that a request asks for, if it is one that does.
    fn choice(&self, body: &RequestBody) -> Option<(Subscription, Vec<String>)> {
        match body {
            RequestBody::Subscribe(wanted) => Some((*wanted, Vec::new())),
            RequestBody::SubscribeConsoles { names } => {
                Some((Subscription { consoles: !names.is_empty(), ..self.subscription }, names.clone()))
            }
            _ => None,
        }
    }

    /// Returns whether a message is for this client.
    fn wants(&self, stream: &Stream<'_>) -> bool {
        match stream {
            Stream::Log(_) => self.subscription.log,
            Stream::Event(_) => self.subscription.events,
            Stream::Console { name, .. } => self.subscription.consoles && is_chosen(&self.consoles_of, name),
        }
    }
}

/// Returns whether a guest is one of these; none: all are.
fn is_chosen(guests: &[String], name: &str) -> bool {
    guests.is_empty() || guests.iter().any(|guest| guest == name)
}

/// The state of all connections.
#[derive(Default)]
pub(super) struct Router {
    clients: BTreeMap<ClientId, Client>,
    last_client: ClientId,
    host_decoder: Box<Decoder>,
    /// The bytes to send to the host.
    pub to_host: Outbox,
    /// Requests without an answer: our number, the client (none: ours), and the client's number.
    pending: BTreeMap<u32, (Option<ClientId>, u32)>,
    last_request: u32,
    /// Requests that wait for the host to be ready.
    held: VecDeque<(ClientId, Request)>,
    is_ready: bool,
    /// The last subscription that was sent to the host.
    subscribed: Subscription,
    backlog: Backlog,
    happened: Vec<What>,
}

impl Router {
    /// Sends the greeting, which subscribes to what is wanted. The caller repeats it until the host answers.
    pub fn greet(&mut self) {
        if !self.is_ready && self.to_host.is_empty() {
            self.to_host.push(&[0]);
            self.pending.retain(|_, (client, _)| client.is_some());
            self.subscribe();
        }
    }

    /// Adds a connection.
    pub fn connect(&mut self) -> ClientId {
        self.last_client += 1;
        self.clients.insert(self.last_client, Client::default());
        self.last_client
    }

    /// Removes a connection that has ended; answers to its requests are dropped.
    pub fn disconnect(&mut self, id: ClientId) {
        self.clients.remove(&id);
        self.held.retain(|(client, _)| *client != id);
        self.pending.values_mut().filter(|(client, _)| *client == Some(id)).for_each(|(client, _)| *client = None);
        self.subscribe_if_changed();
    }

    /// Returns the numbers of all connections.
    pub fn clients(&mut self) -> impl Iterator<Item = (ClientId, &mut Client)> {
        self.clients.iter_mut().map(|(id, client)| (*id, client))
    }

    /// Returns a connection.
    pub fn client(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(&id)
    }

    /// Returns the happenings since the last call.
    pub fn take_happened(&mut self) -> Vec<What> {
        std::mem::take(&mut self.happened)
    }

    /// Takes bytes from a client.
    pub fn client_bytes(&mut self, id: ClientId, bytes: &[u8]) {
        for &byte in bytes {
            let Some(client) = self.clients.get_mut(&id).filter(|client| !client.is_leaving) else { return };
            match client.decoder.push_byte(byte) {
                None => {}
                Some(Ok(Frame::Request(request))) => self.request(id, request),
                Some(Ok(_)) => self.expel(id, "a client may send requests only".to_owned()),
                Some(Err(FrameError::NewRequest { id: number })) => {
                    let reason = "the process that owns the line is of an older release, and does not know the request";
                    self.refuse(id, number, RefusalCode::Protocol, reason.to_owned());
                }
                Some(Err(error)) => self.expel(id, error.to_string()),
            }
        }
    }

    /// Reports the host's end to all clients and drops them.
    pub fn host_gone(&mut self) {
        let ids: Vec<ClientId> = self.clients.keys().copied().collect();
        for id in ids {
            if let Some(client) = self.clients.get_mut(&id) {
                client.is_leaving = true;
            }
        }
    }

    fn request(&mut self, id: ClientId, request: Request) {
        if let Some(client) = self.clients.get(&id)
            && let Some((wanted, consoles_of)) = client.choice(&request.body)
        {
            return self.subscribe_client(id, request.id, wanted, consoles_of);
        }
        let waiting = self.pending.values().filter(|(client, _)| *client == Some(id)).count();
        let held = self.held.iter().filter(|(client, _)| *client == id).count();
        if waiting + held >= MAX_PENDING {
            let reason = format!("{MAX_PENDING} requests wait for an answer already");
            return self.refuse(id, request.id, RefusalCode::Exhausted, reason);
        }
        // A signed frame goes on unchanged; the streams that it asks the host for are this client's.
        if let RequestBody::Signed(signed) = &request.body
            && let Ok(body) = RequestBody::from_bytes(&signed.body)
            && let Some(client) = self.clients.get_mut(&id)
            && let Some(choice) = client.choice(&body)
        {
            (client.subscription, client.consoles_of) = choice;
        }
        match self.is_ready {
            true => self.forward(id, request),
            false => self.held.push_back((id, request)),
        }
    }

    fn forward(&mut self, id: ClientId, request: Request) {
        let number = self.next_request();
        let frame = Frame::Request(Request { id: number, body: request.body });
        match encoded(&frame) {
            Ok(bytes) => {
                self.pending.insert(number, (Some(id), request.id));
                self.to_host.push(&bytes);
            }
            Err(error) => self.refuse(id, request.id, RefusalCode::Invalid, error.to_string()),
        }
    }

    fn subscribe_client(&mut self, id: ClientId, request: u32, wanted: Subscription, consoles_of: Vec<String>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let is_new_to_consoles = wanted.consoles && !client.subscription.consoles;
        (client.subscription, client.consoles_of) = (wanted, consoles_of.clone());
        self.send(id, &Frame::Response(Response { id: request, result: Ok(ReplyBody::Done) }));
        if is_new_to_consoles {
            let chunks: Vec<_> =
                self.backlog.chunks(&consoles_of).filter_map(|stream| encoded(&Frame::Stream(stream)).ok()).collect();
            chunks.iter().for_each(|bytes| self.push(id, bytes));
        }
        self.subscribe_if_changed();
    }

    /// Returns the union of all subscriptions. The screen always wants events and consoles; the log it
    /// takes from COM1.
    fn wanted(&self) -> Subscription {
        let log = self.clients.values().any(|client| client.subscription.log);
        Subscription { log, events: true, consoles: true }
    }

    fn subscribe_if_changed(&mut self) {
        if self.is_ready && self.wanted() != self.subscribed {
            self.subscribe();
        }
    }

    fn subscribe(&mut self) {
        let number = self.next_request();
        self.subscribed = self.wanted();
        self.pending.insert(number, (None, 0));
        let body = RequestBody::Subscribe(self.subscribed);
        if let Ok(bytes) = encoded(&Frame::Request(Request { id: number, body })) {
            self.to_host.push(&bytes);
        }
    }

    fn note(&mut self, text: String) {
        self.happened.push(What::Note(text));
    }

    /// Sends a client the reason for its refusal, and drops it.
    fn expel(&mut self, id: ClientId, reason: String) {
        self.note(format!("a client was dropped: {reason}"));
        self.refuse(id, 0, RefusalCode::Protocol, reason);
        if let Some(client) = self.clients.get_mut(&id) {
            client.is_leaving = true;
        }
    }

    fn refuse(&mut self, id: ClientId, request: u32, code: RefusalCode, reason: String) {
        let refusal = Refusal { code, reason, hint: String::new() };
        self.send(id, &Frame::Response(Response { id: request, result: Err(refusal) }));
    }

    fn send(&mut self, id: ClientId, frame: &Frame<'_>) {
        match encoded(frame) {
            Ok(bytes) => self.push(id, &bytes),
            Err(error) => self.note(format!("a message to a client was lost: {error}")),
        }
    }

    fn push(&mut self, id: ClientId, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if !client.is_leaving && !client.outbox.push(bytes) {
            client.is_leaving = true;
            client.outbox.clear();
            self.note("a client was dropped: it does not read what it asked for".to_owned());
        }
    }

    /// Returns a number for a request of ours; 0 is kept for responses to nothing.
    fn next_request(&mut self) -> u32 {
        self.last_request = self.last_request.checked_add(1).unwrap_or(1);
        self.last_request
    }
}
