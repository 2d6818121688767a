// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream to a server in a turn that others may end.

use nbd::{Status, Stream};

use super::socket::Socket;

/// A stream from which nothing more comes as soon as `is_over`, but something in each turn.
#[derive(Debug)]
pub struct Bounded<'a, F> {
    socket: &'a mut Socket,
    is_over: F,
    has_received: bool,
    has_left_some: bool,
}

impl<'a, F: FnMut() -> bool> Bounded<'a, F> {
    /// The stream in a turn that begins.
    pub fn new(socket: &'a mut Socket, is_over: F) -> Self {
        Self { socket, is_over, has_received: false, has_left_some: false }
    }

    /// Returns whether there may be bytes that were left for the next turn.
    pub fn has_left_some(&self) -> bool {
        self.has_left_some
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
        self.socket.send(bytes)
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        self.has_left_some |= self.has_received && (self.is_over)();
        self.has_received = true;
        if self.has_left_some { 0 } else { self.socket.receive(into) }
    }

    fn reset(&mut self) {
        self.socket.reset();
    }
}
