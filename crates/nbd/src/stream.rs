// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interfaces that a client uses: a stream of bytes to its server, and the driver that makes its requests.

use crate::request::Failure;

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is none, or the server has ended it. Bytes that have arrived can still be received.
    Closed,
    /// The server has not answered yet.
    Connecting,
    /// Bytes go both ways.
    Open,
}

/// A stream of bytes to a server. No method waits.
pub trait Stream {
    /// Begins to connect. A previous stream is dropped.
    fn open(&mut self);
    /// Returns its state.
    fn status(&mut self) -> Status;
    /// Sends as many of these bytes as there is room for now; returns how many.
    fn send(&mut self, bytes: &[u8]) -> usize;
    /// Receives bytes that have arrived; returns how many.
    fn receive(&mut self, into: &mut [u8]) -> usize;
    /// Ends the stream at once. Bytes that have not arrived are lost.
    fn reset(&mut self);
}

/// The driver that makes requests, by the tag of each.
pub trait Driver {
    /// A fault of the driver, which ends its requests.
    type Fault;

    /// Copies data of a write, from byte `at` of the request on.
    ///
    /// # Errors
    /// The driver's fault.
    fn read(&mut self, tag: u16, at: u32, into: &mut [u8]) -> Result<(), Self::Fault>;

    /// Takes data of a read, from byte `at` of the request on. Data that comes twice is the same unless another request
    /// changes it.
    ///
    /// # Errors
    /// The driver's fault.
    fn write(&mut self, tag: u16, at: u32, from: &[u8]) -> Result<(), Self::Fault>;

    /// Completes a request.
    ///
    /// # Errors
    /// The driver's fault.
    fn complete(&mut self, tag: u16, result: Result<(), Failure>) -> Result<(), Self::Fault>;
}
