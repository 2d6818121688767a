// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data and status of requests in flight, by their chains.

use ::virtio::{Chain, Fault};
use nbd::{Driver, Failure};

use super::queue::REQUESTS;
use super::requests::{HEADER_BYTES, answer, status};
use crate::devices::virtio::Io;

/// The driver's side of the requests.
pub(super) struct Transfer<'a, 'i> {
    io: &'a mut Io<'i>,
    chain: &'a mut Chain,
    /// The request of this chain.
    tag: Option<u16>,
}

impl<'a, 'i> Transfer<'a, 'i> {
    pub fn new(io: &'a mut Io<'i>, chain: &'a mut Chain) -> Self {
        Self { io, chain, tag: None }
    }

    /// Follows the chain of a request, unless it is the one that was followed last in this turn.
    fn follow(&mut self, tag: u16) -> Result<(), Fault> {
        if self.tag == Some(tag) {
            return Ok(());
        }
        self.tag = None;
        if !self.io.follow(REQUESTS, tag, self.chain)? {
            return Err(Fault::Request("a queue is gone while requests are in flight"));
        }
        self.tag = Some(tag);
        Ok(())
    }
}

const CHANGED: Fault = Fault::Request("a chain has changed while it was in flight");

impl Driver for Transfer<'_, '_> {
    type Fault = Fault;

    fn read(&mut self, tag: u16, at: u32, into: &mut [u8]) -> Result<(), Fault> {
        self.follow(tag)?;
        let from = HEADER_BYTES.checked_add(at).ok_or(CHANGED)?;
        let read = self.chain.read(self.io.memory, from, into)?;
        if read == into.len() { Ok(()) } else { Err(CHANGED) }
    }

    fn write(&mut self, tag: u16, at: u32, from: &[u8]) -> Result<(), Fault> {
        self.follow(tag)?;
        let written = self.chain.write(self.io.memory, at, from)?;
        if written == from.len() { Ok(()) } else { Err(CHANGED) }
    }

    fn complete(&mut self, tag: u16, result: Result<(), Failure>) -> Result<(), Fault> {
        self.follow(tag)?;
        self.tag = None;
        // Requests other than reads have no room for data.
        let data = if result.is_ok() { self.chain.writable_bytes().saturating_sub(1) } else { 0 };
        answer(self.chain, status(result), data, self.io)
    }
}
