// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream to a server in another guest: the host's own end of a connection of virtio sockets.

use nbd::Status;
use vsock::{Address, Progress, StreamPhase};

/// The stream to one port of a guest. Its own ports are those with one remainder, by which the host distinguishes the
/// streams of all disks.
#[derive(Clone, Debug)]
pub struct Socket {
    stream: vsock::Stream,
    remainder: u32,
    divisor: u32,
    count: u32,
}

/// Connections until a port comes again: the largest port stays below 2^32.
const COUNTS: u32 = 1 << 20;

impl Socket {
    /// The stream with this number, of so many, to a port of a guest. The first connection's port is derived from
    /// `seed`, so that an image does not begin where the one before did.
    pub fn new(peer: Address, number: u16, of: u16, seed: u32) -> Self {
        let (remainder, divisor) = (number.into(), u32::from(of.max(1)));
        Self { stream: vsock::Stream::new(peer), remainder, divisor, count: seed % COUNTS }
    }

    /// The number of the stream that has this port, of so many.
    pub fn number_of(port: u32, of: u16) -> usize {
        (port % u32::from(of.max(1))) as usize
    }

    /// Goes on with a connection of the image before, if it is one of this stream's; returns whether it does. The next
    /// one has another port.
    pub fn resume(&mut self, progress: &Progress) -> bool {
        let (count, remainder) = (progress.own_port / self.divisor, progress.own_port % self.divisor);
        let is_own = remainder == self.remainder && count < COUNTS && progress.peer == self.stream.peer();
        if is_own {
            self.count = count;
        }
        is_own && self.stream.resume(progress)
    }

    /// Returns the stream to the guest and from it.
    pub fn stream(&mut self) -> &mut vsock::Stream {
        &mut self.stream
    }
}

impl nbd::Stream for Socket {
    fn open(&mut self) {
        self.count = (self.count + 1) % COUNTS;
        self.stream.open(self.remainder + self.divisor * self.count);
    }

    fn status(&mut self) -> Status {
        match self.stream.phase() {
            StreamPhase::Closed => Status::Closed,
            StreamPhase::Connecting => Status::Connecting,
            StreamPhase::Open => Status::Open,
        }
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        self.stream.send(bytes)
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        self.stream.receive(into)
    }

    fn reset(&mut self) {
        self.stream.reset();
    }
}
