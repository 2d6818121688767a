// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream to a server in a turn that others may end.

use nbd::{Status, Stream};

use super::socket::Socket;

/// A stream by which nothing more goes as soon as `is_over`, but something in each turn.
#[derive(Debug)]
pub struct Bounded<'a, F> {
    socket: &'a mut Socket,
    is_over: F,
    has_begun: bool,
    has_left_some: bool,
}

impl<'a, F: FnMut() -> bool> Bounded<'a, F> {
    /// The stream in a turn that begins.
    pub fn new(socket: &'a mut Socket, is_over: F) -> Self {
        Self { socket, is_over, has_begun: false, has_left_some: false }
    }

    /// Returns whether there may be bytes, or room, that were left for the next turn.
    pub fn has_left_some(&self) -> bool {
        self.has_left_some
    }

    fn goes_on(&mut self) -> bool {
        self.has_left_some |= self.has_begun && (self.is_over)();
        self.has_begun = true;
        !self.has_left_some
    }
}

impl<F: FnMut() -> bool> Stream for Bounded<'_, F> {
    fn open(&mut self) {
        self.socket.open();
    }

    fn status(&mut self) -> Status {
        self.socket.status()
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        if self.goes_on() { self.socket.send(bytes) } else { 0 }
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        if self.goes_on() { self.socket.receive(into) } else { 0 }
    }

    fn reset(&mut self) {
        self.socket.reset();
    }
}
