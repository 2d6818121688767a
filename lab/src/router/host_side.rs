// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages from the host: answers go to the client that asked, streams to subscribers.

use wire::{Frame, FrameError, Response, Stream};

use super::outbox::encoded;
use super::{ClientId, Router};
use crate::What;

/// The number of the host's answer to what it could not read.
const NO_REQUEST: u32 = 0;

impl Router {
    /// Takes bytes from the host.
    pub fn host_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match self.host_decoder.push_byte(byte).map(|result| result.or_else(FrameError::as_refusal)) {
                None => {}
                Some(Ok(Frame::Response(response))) => self.response(response),
                Some(Ok(Frame::Stream(stream))) => self.stream(stream),
                Some(Ok(Frame::Request(_))) => self.note("the host sent a request, which only clients may".to_owned()),
                // A stream that no client of this release has subscribed to.
                Some(Err(FrameError::NewMessage)) => {}
                Some(Err(error)) => self.host_error(error),
            }
        }
    }

    fn response(&mut self, response: Response) {
        // Number 0 refuses what the host could not read: a greeting that came while it set its port up. It is sent
        // again.
        if !self.is_ready && response.id != NO_REQUEST {
            self.become_ready();
        }
        match self.pending.remove(&response.id) {
            Some((Some(client), id)) => self.send(client, &Frame::Response(Response { id, result: response.result })),
            Some((None, _)) => {
                if let Err(refusal) = response.result {
                    self.note(format!("the host refused a subscription: {refusal}"));
                }
            }
            // An earlier greeting, answered late; or the host's word about a frame it could not read.
            None => {
                if let Err(refusal) = response.result.as_ref()
                    && self.is_ready
                {
                    self.note(format!("the host could not read a request: {refusal}"));
                }
            }
        }
    }

    fn become_ready(&mut self) {
        self.is_ready = true;
        self.happened.push(What::Ready);
        for (id, request) in std::mem::take(&mut self.held) {
            self.forward(id, request);
        }
        self.subscribe_if_changed();
    }

    fn stream(&mut self, stream: Stream<'static>) {
        let frame = Frame::Stream(stream);
        let Ok(bytes) = encoded(&frame) else { return };
        let Frame::Stream(stream) = frame else { return };
        let ids: Vec<ClientId> =
            self.clients.iter().filter(|(_, client)| client.wants(&stream)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.push(id, &bytes));
        match stream {
            Stream::Log(_) => {}
            Stream::Event(event) => self.happened.push(What::Event(event.into_owned())),
            Stream::Console { name, bytes } => {
                self.backlog.add(&name, &bytes);
                self.happened.push(What::Console { name: name.into_owned(), bytes: bytes.into_owned() });
            }
        }
    }

    fn host_error(&mut self, error: FrameError) {
        // Bytes from before the host has set up its port are noise of the machine.
        if self.is_ready {
            self.note(format!("control channel: {error}"));
        }
    }
}
