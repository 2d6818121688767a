// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's session with a host: requests and their answers, and messages that the host sends unasked.
//!
//! The peer may be a broker's `control.sock` or the host's own stream; the protocol is the same. The line may lose,
//! add or garble bytes: damaged frames are skipped, and [`asking`] decides which requests are repeated.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use wire::{
    Decoder, Frame, FrameError, MAX_FRAME_BYTES, ReplyBody, Request, RequestBody, Response, Stream, Subscription,
    encode,
};

use crate::connection::{self, Address, Line};

mod asking;
#[cfg(test)]
mod asking_tests;
mod capture;
mod consoles;
mod error;
mod figures;
mod number;
mod profile;
mod questions;
mod session;
#[cfg(test)]
mod session_tests;
mod upload;

pub use capture::{MAX_SNAP_BYTES, Wanted};
pub use error::{Closed, Damage, NoAnswer, NotFound, Unclear, Unreachable};
pub use number::some_number;
pub use profile::Taken;
pub use questions::Previous;

use asking::Patience;
use session::Signing;

/// The time after which a line that takes no byte counts as broken.
const STUCK: Duration = Duration::from_secs(20);
/// The time without a message after which a host without a broker is asked whether it is still there.
const CHECK_AFTER: Duration = Duration::from_secs(30);
/// The most bytes that wait in a host for its line.
const HOST_QUEUE_BYTES: usize = 64 << 10;
/// The most bytes that wait in a host for its line as long as it sends nothing unasked.
const HOST_ANSWERS_BYTES: usize = 4 * MAX_FRAME_BYTES;
/// The most messages that wait for the caller while consoles' output is kept: 1 KiB each.
const MAX_WAITING: usize = 4096;

/// A client of one host.
pub struct Client {
    line: Line,
    /// The host's address, if no broker is known to be between.
    address: Option<Address>,
    decoder: Box<Decoder>,
    /// Messages that came while an answer was waited for.
    streams: VecDeque<Stream<'static>>,
    responses: VecDeque<Response>,
    last_id: u32,
    damage: Damage,
    /// Bytes of consoles that were dropped because too many messages waited.
    lost_output: u64,
    subscription: Subscription,
    last_heard: Instant,
    patience: Patience,
    /// Pieces of files are packed.
    packs: bool,
    /// The key that requests are signed with.
    signing: Option<Signing>,
}

impl Client {
    /// Connects to the broker at `path`.
    pub fn connect(path: &Path) -> Result<Self> {
        let line = connection::open(&Address::Unix(path.to_owned()));
        Ok(Self::on(line.map_err(|error| Unreachable(format!("{error:#}")))?))
    }

    /// Speaks over a stream that is connected.
    pub fn over(stream: impl Into<OwnedFd>) -> Self {
        Self::on(Line::over(stream))
    }

    /// Speaks over an open line.
    pub fn on(line: Line) -> Self {
        Self {
            line,
            address: None,
            decoder: Box::default(),
            streams: VecDeque::new(),
            responses: VecDeque::new(),
            last_id: 0,
            damage: Damage::default(),
            lost_output: 0,
            subscription: Subscription::default(),
            last_heard: Instant::now(),
            patience: Patience::default(),
            packs: true,
            signing: None,
        }
    }

    /// Sends a request without waiting; its answer carries the returned number.
    pub fn send(&mut self, body: RequestBody) -> Result<u32> {
        let id = self.next_id();
        self.send_as(id, body)?;
        Ok(id)
    }

    /// Returns the next answer to a request of [`Self::send`]; an error if none comes within `timeout`. An answer with
    /// the number 0 is to bytes that the host could not read.
    pub fn answer(&mut self, timeout: Duration) -> Result<Response> {
        let deadline = Instant::now() + timeout;
        self.response(deadline)?.ok_or_else(|| self.no_answer(timeout))
    }

    /// Returns the next message that the host sends unasked, or `None` if none comes within `timeout`.
    ///
    /// # Errors
    /// The line has ended, or the host has vanished.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Stream<'static>>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(stream) = self.streams.pop_front() {
                return Ok(Some(stream));
            }
            let asked = self.last_heard + CHECK_AFTER;
            if self.address.is_some() && Instant::now() >= asked {
                self.info()?;
            } else if !self.receive(deadline.min(asked))? && Instant::now() >= deadline {
                return Ok(None);
            }
        }
    }

    /// Subscribes to the messages that [`Self::next`] returns.
    pub fn subscribe(&mut self, wanted: Subscription) -> Result<()> {
        self.request(RequestBody::Subscribe(wanted))?;
        self.subscription = wanted;
        Ok(())
    }

    /// Returns the number of damaged frames so far: each may have been a message.
    pub fn damaged_frames(&self) -> u32 {
        self.damage.frames
    }

    /// Returns how many bytes of consoles were dropped since the last call: a guest may write without end.
    pub fn take_lost_output(&mut self) -> u64 {
        std::mem::take(&mut self.lost_output)
    }

    /// Leaves signals to the caller: the line does not handle them any more.
    pub fn handles_signals(&self) {
        self.line.leave_signals();
    }

    /// Returns `base`, and the time for which the line is busy with this many bytes and all that waits in the host.
    pub fn patience(&self, base: Duration, bytes: usize) -> Duration {
        let waiting = if self.subscription == Subscription::default() { HOST_ANSWERS_BYTES } else { HOST_QUEUE_BYTES };
        base + self.line.time_of(bytes + waiting)
    }

    fn next_id(&mut self) -> u32 {
        // 0 is the number of answers to bytes that the host could not read.
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        self.last_id
    }

    /// Sends a request. The delimiter in front ends whatever noise is on the line.
    fn send_as(&mut self, id: u32, body: RequestBody) -> Result<usize> {
        let body = self.as_sent(body)?;
        let mut buffer = [0; 1 + MAX_FRAME_BYTES];
        let bytes = 1 + encode(&Frame::Request(Request { id, body }), &mut buffer[1..])?.len();
        self.transmit(&buffer[..bytes])?;
        Ok(bytes)
    }

    /// Writes bytes, and reads those that arrive meanwhile: the host may be unable to take more before.
    fn transmit(&mut self, mut bytes: &[u8]) -> Result<()> {
        let mut deadline = Instant::now() + STUCK;
        while !bytes.is_empty() {
            let ready = self.line.wait(true, deadline)?;
            // A peer that has hung up may have reported why: that is still to be read, and after it the end.
            if ready.to_read && self.take_in().is_err_and(|error| error.is::<Closed>()) {
                return Ok(());
            }
            if ready.to_write {
                match self.line.write(bytes).map_err(|error| broken(&error))? {
                    Some(count) => bytes = &bytes[count..],
                    None => return Ok(()),
                }
                deadline = Instant::now() + STUCK;
            } else if Instant::now() >= deadline {
                return Err(
                    Unreachable(format!("the line has taken no byte for {STUCK:?}{}", self.place_hint())).into()
                );
            }
        }
        Ok(())
    }

    /// Returns the next answer, or `None` if none comes before the deadline.
    fn response(&mut self, deadline: Instant) -> Result<Option<Response>> {
        loop {
            if let Some(response) = self.responses.pop_front() {
                return Ok(Some(response));
            }
            if !self.receive(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Reads once; returns `false` at the deadline.
    fn receive(&mut self, deadline: Instant) -> Result<bool> {
        if !self.line.wait(false, deadline)?.to_read {
            return Ok(Instant::now() < deadline);
        }
        self.take_in().map(|()| true)
    }

    /// Decodes the bytes that have come. A message of another version is an error, damage is not: the next frame may be
    /// whole.
    fn take_in(&mut self) -> Result<()> {
        let mut buffer = [0; 16 * 1024];
        let Some(count) = self.line.read(&mut buffer).map_err(|error| broken(&error))? else {
            let closed = anyhow::Error::from(Closed);
            return Err(self.line.ending().map_or(closed, |reason| anyhow::Error::from(Closed).context(reason)));
        };
        let (streams, responses, damage) = (&mut self.streams, &mut self.responses, &mut self.damage);
        let (lost, mut incompatible, mut is_heard) = (&mut self.lost_output, None, false);
        self.decoder.push(&buffer[..count], |result| match result.or_else(FrameError::as_refusal) {
            Ok(Frame::Stream(stream)) => {
                match &stream {
                    Stream::Console { bytes, .. } if streams.len() >= MAX_WAITING => *lost += bytes.len() as u64,
                    _ => streams.push_back(stream),
                }
                is_heard = true;
            }
            Ok(Frame::Response(response)) => {
                responses.push_back(response);
                is_heard = true;
            }
            Ok(Frame::Request(_)) => damage.echoes += 1,
            // A stream that this tool has not subscribed to.
            Err(FrameError::NewMessage) => is_heard = true,
            Err(error @ (FrameError::UnknownVersion { .. } | FrameError::Malformed)) => incompatible = Some(error),
            Err(error) => damage.note(error),
        });
        if is_heard {
            self.last_heard = Instant::now();
        }
        incompatible.map_or(Ok(()), |error| Err(error).context("the host's answer cannot be read"))
    }

    fn no_answer(&self, timeout: Duration) -> anyhow::Error {
        NoAnswer { seconds: timeout.as_secs_f64(), damage: self.damage, place: self.place_hint() }.into()
    }

    /// Returns the end of an error message: the likely fault of the line.
    fn place_hint(&self) -> String {
        match &self.address {
            Some(address) => format!("; {address}: {}", connection::hint(address)),
            None => "; see its log in the terminal of `baton up`".to_owned(),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.address.is_some() && self.subscription != Subscription::default() {
            let _ = self.send(RequestBody::Subscribe(Subscription::default()));
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

fn broken(error: &io::Error) -> Unreachable {
    Unreachable(format!("the host's connection is broken: {error}"))
}

fn unexpected(reply: &ReplyBody) -> String {
    format!("the host answered something else ({reply:?}); use tool and host of one release")
}
