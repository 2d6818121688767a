// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver of a guest's numbered datagrams (the agent's task `stream`), outside the machine: how long it heard
//! nothing, and which numbers it never got.
//!
//! ```text
//! guest's card ── QEMU's backend `user` ──────► UDP datagram: the payload
//!              ── QEMU's backend `dgram` ─────► Unix datagram: a whole Ethernet frame
//! ```

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

pub use arrivals::Arrivals;

mod arrivals;
mod drops;
mod frame;

/// Longest time for which a receiver does not notice that it is to end.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The longest frame.
const FRAME_BYTES: usize = 2048;

/// A source of datagrams, or of frames that they are in.
trait Source: Send + 'static {
    /// Waits for the next one for [`END_CHECK_INTERVAL`] at most.
    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Returns the number of a datagram of the stream.
    fn number(bytes: &[u8]) -> Option<u64>;
}

impl Source for UdpSocket {
    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.recv(bytes)
    }

    fn number(bytes: &[u8]) -> Option<u64> {
        frame::number(bytes)
    }
}

impl Source for UnixDatagram {
    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.recv(bytes)
    }

    fn number(bytes: &[u8]) -> Option<u64> {
        frame::number(frame::payload(bytes)?)
    }
}

/// A receiver, which stamps datagrams in a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Receiver {
    start: Instant,
    arrivals: Arc<Mutex<Arrivals>>,
    is_over: Arc<AtomicBool>,
    /// Of UDP.
    port: Option<u16>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Receives datagrams that QEMU's user networking sends on: the guest sends them to the gateway, 10.0.2.2. Returns
    /// their port, too.
    ///
    /// # Errors
    /// There is no free port.
    pub fn of_user_network() -> Result<(Self, u16)> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no UDP port is free")?;
        socket.set_read_timeout(Some(END_CHECK_INTERVAL))?;
        let port = socket.local_addr().map(|at: SocketAddr| at.port())?;
        Ok((Self::of(socket, Some(port)), port))
    }

    /// Receives the frames of a card with the backend `dgram` and this path as its remote end.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn of_frames(remote: &Path) -> Result<Self> {
        let socket = UnixDatagram::bind(remote).with_context(|| format!("{} cannot be made", remote.display()))?;
        socket.set_read_timeout(Some(END_CHECK_INTERVAL))?;
        Ok(Self::of(socket, None))
    }

    fn of<S: Source>(source: S, port: Option<u16>) -> Self {
        let (start, arrivals, is_over) = (Instant::now(), Arc::default(), Arc::default());
        let shared = (Arc::clone(&arrivals), Arc::clone(&is_over));
        let thread = Some(thread::spawn(move || receive(&source, start, &shared.0, &shared.1)));
        Self { start, arrivals, is_over, port, thread }
    }

    /// Returns the time on the clock of [`Self::arrivals`].
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns how many datagrams have come to the receiver's socket and found its buffer full; `None` if that is not
    /// known. They are lost to it, but not on their way.
    pub fn dropped(&self) -> Option<u64> {
        drops::of_port(self.port?)
    }

    /// Returns all that has arrived so far.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn receive<S: Source>(source: &S, start: Instant, arrivals: &Mutex<Arrivals>, is_over: &AtomicBool) {
    let mut bytes = [0; FRAME_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let received = source.receive(&mut bytes);
        let at = start.elapsed();
        let number = received.ok().and_then(|count| S::number(bytes.get(..count)?));
        if let Some(number) = number {
            arrivals.lock().unwrap_or_else(PoisonError::into_inner).add(at, number);
        }
    }
}

#[cfg(test)]
mod tests;
