// SPDX-License-Identifier: MIT OR Apache-2.0
//! One conversation with a host: requests and their answers, and messages that the host sends unasked.
//!
//! The peer may be a broker's `control.sock` or the host's own stream; the protocol is the same.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use thiserror::Error;
use wire::{
    CpuInfo, Decoder, Event, Frame, HostInfo, IommuUnit, LogRecord, MAX_FRAME_BYTES, NetPort, PciFunction, PciSurvey,
    ReplyBody, Request, RequestBody, Response, Stream, Subscription, TimelinePage, TimelinePlace, VmInfo,
    Vulnerability, encode,
};

mod figures;
mod profile;
mod upload;

pub use profile::Taken;

/// Longest time for the host to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Records asked for at a time.
const PAGE_LIMIT: u16 = 256;

/// The host (or its broker) has ended the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host has closed the connection; it has probably ended")]
pub struct Closed;

/// The data that the host before this one left in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// Its epitaph, line by line; empty if it left none.
    pub lines: Vec<String>,
    /// If this image replaced it: the time before which the log's records are the old image's.
    pub log_until_ns: Option<u64>,
}

/// One conversation with a host.
pub struct Client {
    socket: UnixStream,
    decoder: Box<Decoder>,
    /// Messages that came while an answer was waited for.
    streams: VecDeque<Stream<'static>>,
    responses: VecDeque<Response>,
    last_id: u32,
}

impl Client {
    /// Connects to the broker at `path`.
    pub fn connect(path: &Path) -> Result<Self> {
        let socket = UnixStream::connect(path)
            .with_context(|| format!("no host answers at {}; it has probably ended", path.display()))?;
        Ok(Self::over(socket))
    }

    /// Speaks over a stream that is connected.
    pub fn over(socket: UnixStream) -> Self {
        Self { socket, decoder: Box::default(), streams: VecDeque::new(), responses: VecDeque::new(), last_id: 0 }
    }

    /// Sends a request without waiting; its answer carries the returned number.
    pub fn send(&mut self, body: RequestBody) -> Result<u32> {
        self.last_id += 1;
        let id = self.last_id;
        let mut buffer = [0; MAX_FRAME_BYTES];
        let bytes = encode(&Frame::Request(Request { id, body }), &mut buffer)?;
        // A peer that has hung up may have reported why: that is still to be read, and after it the end of the stream.
        let _ = self.socket.write_all(bytes);
        Ok(id)
    }

    /// Returns the next answer to a request of [`Self::send`]; an error if none comes within `timeout`.
    pub fn answer(&mut self, timeout: Duration) -> Result<Response> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(response) = self.responses.pop_front() {
                return Ok(response);
            }
            if !self.receive(deadline)? {
                bail!("the host did not answer within {timeout:?}; see its log in the terminal of `baton up`");
            }
        }
    }

    /// Sends a request and waits for the answer. A refusal is an error ([`wire::Refusal`] can be downcast to).
    pub fn request(&mut self, body: RequestBody) -> Result<ReplyBody> {
        self.request_within(ANSWER_TIMEOUT, body)
    }

    /// Sends a request and waits at most `timeout` for the answer.
    pub fn request_within(&mut self, timeout: Duration, body: RequestBody) -> Result<ReplyBody> {
        let id = self.send(body)?;
        let deadline = Instant::now() + timeout;
        loop {
            let response = self.answer(deadline.saturating_duration_since(Instant::now()))?;
            if response.id == id || response.id == 0 {
                return Ok(response.result?);
            }
        }
    }

    /// Returns the next message that the host sends unasked, or `None` if none comes within `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Stream<'static>>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(stream) = self.streams.pop_front() {
                return Ok(Some(stream));
            }
            if !self.receive(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Returns the host's description.
    pub fn info(&mut self) -> Result<HostInfo> {
        match self.request(RequestBody::Info)? {
            ReplyBody::Info(info) => Ok(info),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns the host's state for each speculation vulnerability.
    pub fn vulnerabilities(&mut self) -> Result<Vec<Vulnerability>> {
        match self.request(RequestBody::Vulnerabilities)? {
            ReplyBody::Vulnerabilities(rows) => Ok(rows),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns every virtual machine.
    pub fn vms(&mut self) -> Result<Vec<VmInfo>> {
        let mut all = Vec::new();
        let mut from_index = 0;
        loop {
            match self.request(RequestBody::VmList { from_index })? {
                ReplyBody::Vms { vms, next_index } => {
                    all.extend(vms);
                    match next_index {
                        Some(next) if next > from_index => from_index = next,
                        _ => return Ok(all),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns every CPU.
    pub fn cpus(&mut self) -> Result<Vec<CpuInfo>> {
        let mut all = Vec::new();
        let mut from_index = 0;
        loop {
            match self.request(RequestBody::CpuList { from_index })? {
                ReplyBody::Cpus { cpus, next_index } => {
                    all.extend(cpus);
                    match next_index {
                        Some(next) if next > from_index => from_index = next,
                        _ => return Ok(all),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns every PCI function that the host has found so far, and the progress of its discovery.
    pub fn pci(&mut self) -> Result<(PciSurvey, Vec<PciFunction>)> {
        let mut all = Vec::new();
        let mut from_index = 0;
        loop {
            match self.request(RequestBody::PciList { from_index })? {
                ReplyBody::PciFunctions { survey, functions, next_index } => {
                    all.extend(functions);
                    match next_index {
                        Some(next) if next > from_index => from_index = next,
                        _ => return Ok((survey, all)),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns every port of the networks between guests.
    pub fn net_ports(&mut self) -> Result<Vec<NetPort>> {
        let mut all = Vec::new();
        let mut from_index = 0;
        loop {
            match self.request(RequestBody::NetList { from_index })? {
                ReplyBody::NetPorts { ports, next_index } => {
                    all.extend(ports);
                    match next_index {
                        Some(next) if next > from_index => from_index = next,
                        _ => return Ok(all),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns the host's IOMMUs.
    pub fn iommus(&mut self) -> Result<Vec<IommuUnit>> {
        match self.request(RequestBody::Iommus)? {
            ReplyBody::Iommus(units) => Ok(units),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns a page of the log from a place on (0: the oldest record), and the place where the next page begins.
    pub fn log(&mut self, from_sequence: u64) -> Result<(Vec<LogRecord<'static>>, u64)> {
        match self.request(RequestBody::Log { from_sequence, limit: PAGE_LIMIT })? {
            ReplyBody::Log { records, next_sequence } => Ok((records, next_sequence)),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns a page of the events, and the place where the next page begins.
    pub fn events(&mut self, from_sequence: u64) -> Result<(Vec<Event>, u64)> {
        match self.request(RequestBody::Events { from_sequence, limit: PAGE_LIMIT })? {
            ReplyBody::Events { events, next_sequence } => Ok((events, next_sequence)),
            other => bail!(unexpected(&other)),
        }
    }

    /// Returns the data that the host before this one left in memory.
    pub fn previous(&mut self) -> Result<Previous> {
        let mut lines = Vec::new();
        let mut from_line = 0;
        loop {
            match self.request(RequestBody::Epitaph { from_line })? {
                ReplyBody::Epitaph { lines: page, next_line, log_until_ns } => {
                    lines.extend(page);
                    match next_line {
                        Some(next) if next > from_line => from_line = next,
                        _ => return Ok(Previous { lines, log_until_ns }),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Returns every CPU's timeline, as it is now, in pages.
    pub fn timeline(&mut self) -> Result<Vec<TimelinePage>> {
        let (mut all, mut from) = (Vec::new(), TimelinePlace::default());
        loop {
            match self.request(RequestBody::Timeline { from })? {
                ReplyBody::Timeline(page) => {
                    let next = page.next;
                    all.push(page);
                    match next {
                        Some(next) if next > from => from = next,
                        _ => return Ok(all),
                    }
                }
                other => bail!(unexpected(&other)),
            }
        }
    }

    /// Subscribes to the messages that [`Self::next`] returns.
    pub fn subscribe(&mut self, wanted: Subscription) -> Result<()> {
        self.request(RequestBody::Subscribe(wanted)).map(drop)
    }

    /// Sends an order and waits until the host has accepted it.
    pub fn order(&mut self, body: RequestBody) -> Result<()> {
        match self.request(body)? {
            ReplyBody::Done => Ok(()),
            other => bail!(unexpected(&other)),
        }
    }

    /// Reads once; returns `false` at the deadline.
    fn receive(&mut self, deadline: Instant) -> Result<bool> {
        let left = deadline.saturating_duration_since(Instant::now());
        // A timeout of zero would mean to wait for ever.
        self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut buffer = [0; 16 * 1024];
        let count = match self.socket.read(&mut buffer) {
            Ok(0) => return Err(Closed.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(Closed.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Instant::now() < deadline);
            }
            Err(error) => return Err(error).context("the host's connection is broken"),
        };
        let (streams, responses, mut damage) = (&mut self.streams, &mut self.responses, None);
        self.decoder.push(&buffer[..count], |result| match result {
            Ok(Frame::Stream(stream)) => streams.push_back(stream),
            Ok(Frame::Response(response)) => responses.push_back(response),
            Ok(Frame::Request(_)) => {}
            Err(error) => damage = Some(error),
        });
        damage.map_or(Ok(true), |error| Err(error).context("the host's answer cannot be read"))
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn unexpected(reply: &ReplyBody) -> String {
    format!("the host answered something else ({reply:?}); use tool and host of one release")
}
