// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server in memory, for tests: it answers on demand, in any order, loses what is not stable when it is killed,
//! and sends any bytes that a test chooses.

use std::collections::VecDeque;
use std::string::String;
use std::vec::Vec;

use crate::stream::{Status, Stream};
pub use crate::wire::flag;
use crate::wire::{self, be16, be32, be64};

/// Everything that a server can offer.
pub const ALL_FLAGS: u16 = flag::HAS_FLAGS | flag::FLUSH | flag::FUA | flag::TRIM | flag::WRITE_ZEROES;

/// A request that is received and not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Received {
    pub command: u16,
    pub flags: u16,
    pub cookie: u64,
    pub offset: u64,
    pub bytes: u32,
    pub data: Vec<u8>,
}

/// The server, and the stream to it.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Server {
    /// The current content, and the part of it that is stable.
    pub disk: Vec<u8>,
    pub stable: Vec<u8>,
    pub flags: u16,
    pub blocks: Option<(u32, u32)>,
    pub export: String,
    pub is_listening: bool,
    /// It sends no more greetings or replies.
    pub is_mute: bool,
    /// Bytes that one call sends or receives.
    pub room: usize,
    pub received: Vec<Received>,
    pub connections: u32,
    status: Status,
    is_negotiated: bool,
    has_flags: bool,
    input: Vec<u8>,
    output: VecDeque<u8>,
}

#[allow(missing_docs)]
impl Server {
    pub fn new(bytes: usize, flags: u16) -> Self {
        Self {
            disk: std::vec![0; bytes],
            stable: std::vec![0; bytes],
            flags,
            blocks: Some((1, 32 << 20)),
            export: String::from("disk"),
            is_listening: true,
            is_mute: false,
            room: usize::MAX,
            received: Vec::new(),
            connections: 0,
            status: Status::Closed,
            is_negotiated: false,
            has_flags: false,
            input: Vec::new(),
            output: VecDeque::new(),
        }
    }

    /// Ends the server at once. Of each block of `block` bytes that is not stable, `keeps` states whether it is left.
    pub fn kill(&mut self, block: usize, mut keeps: impl FnMut() -> bool) {
        for (disk, stable) in self.disk.chunks_mut(block).zip(self.stable.chunks_mut(block)) {
            if disk != stable && keeps() {
                stable.copy_from_slice(disk);
            }
            disk.copy_from_slice(stable);
        }
        self.disconnect();
    }

    /// Ends the connection; requests that are not answered are not executed.
    pub fn disconnect(&mut self) {
        self.reset();
        self.output.clear();
    }

    /// Sends anything.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        if !self.is_mute {
            self.output.extend(bytes);
        }
    }

    /// Returns whether a received request is about bytes that the disk has.
    pub fn is_inside(&self, index: usize) -> bool {
        let end = |request: &Received| request.offset.checked_add(request.bytes.into());
        self.received.get(index).and_then(end).is_some_and(|end| end <= self.disk.len() as u64)
    }

    /// Executes a received request, and answers it.
    pub fn execute(&mut self, index: usize) -> Received {
        assert!(self.is_inside(index), "the client sends nothing past the end: {:?}", self.received);
        let request = self.received.remove(index);
        let place = request.offset as usize..request.offset as usize + request.bytes as usize;
        match request.command {
            wire::WRITE => self.disk[place.clone()].copy_from_slice(&request.data),
            wire::WRITE_ZEROES => self.disk[place.clone()].fill(0),
            // Trimmed blocks may read as anything.
            wire::TRIM => self.disk[place.clone()].fill(0xee),
            wire::FLUSH => self.stable.copy_from_slice(&self.disk),
            _ => {}
        }
        if request.flags & wire::FUA != 0 {
            self.stable[place.clone()].copy_from_slice(&self.disk[place.clone()]);
        }
        self.answer(request.cookie, 0);
        if request.command == wire::READ {
            let data = self.disk[place].to_vec();
            self.send_raw(&data);
        }
        request
    }

    /// Answers a request without executing it.
    pub fn fail(&mut self, index: usize, error: u32) {
        let request = self.received.remove(index);
        self.answer(request.cookie, error);
    }

    pub fn answer(&mut self, cookie: u64, error: u32) {
        let mut reply = wire::SIMPLE_REPLY.to_be_bytes().to_vec();
        reply.extend(error.to_be_bytes());
        reply.extend(cookie.to_be_bytes());
        self.send_raw(&reply);
    }

    pub fn execute_all(&mut self) {
        while !self.received.is_empty() {
            self.execute(0);
        }
    }

    fn option_reply(&mut self, kind: u32, data: &[u8]) {
        let mut reply = wire::OPTION_REPLY.to_be_bytes().to_vec();
        reply.extend(wire::OPTION_GO.to_be_bytes());
        reply.extend(kind.to_be_bytes());
        reply.extend((data.len() as u32).to_be_bytes());
        reply.extend(data);
        self.send_raw(&reply);
    }

    /// Sends the greeting that every server sends first.
    pub fn greet(&mut self, flags: u16) {
        let mut greeting = wire::GREETING.to_be_bytes().to_vec();
        greeting.extend(wire::OPTION.to_be_bytes());
        greeting.extend(flags.to_be_bytes());
        self.send_raw(&greeting);
    }

    fn parse(&mut self) {
        while !self.is_negotiated && self.parse_option() {}
        while self.is_negotiated && self.parse_request() {}
    }

    fn parse_option(&mut self) -> bool {
        let head = if self.has_flags { 0 } else { 4 };
        let length = be32(&self.input, head + 12) as usize;
        if self.input.len() < head + 16 + length {
            return false;
        }
        assert_eq!(be64(&self.input, head), wire::OPTION);
        assert_eq!(be32(&self.input, head + 8), wire::OPTION_GO);
        let name = be32(&self.input, head + 16) as usize;
        assert_eq!(length, 4 + name + 4, "one request for information");
        let is_it = self.input[head + 20..][..name] == *self.export.as_bytes();
        assert_eq!(be16(&self.input, head + 20 + name + 2), wire::INFO_BLOCK_SIZE);
        self.input.drain(..head + 16 + length);
        self.has_flags = true;
        if !is_it {
            self.option_reply(wire::REPLY_ERROR | 6, b"no such export");
            return true;
        }
        let mut information = wire::INFO_EXPORT.to_be_bytes().to_vec();
        information.extend((self.disk.len() as u64).to_be_bytes());
        information.extend(self.flags.to_be_bytes());
        self.option_reply(wire::REPLY_INFO, &information);
        // A name, which the client has not requested.
        self.option_reply(wire::REPLY_INFO, &[0, 1, b'a', b'b', b'c', b'd', b'e', b'f', b'g', b'h', b'i', b'j', b'k']);
        if let Some((minimum, maximum)) = self.blocks {
            let mut information = wire::INFO_BLOCK_SIZE.to_be_bytes().to_vec();
            [minimum, 4096, maximum].iter().for_each(|bytes| information.extend(bytes.to_be_bytes()));
            self.option_reply(wire::REPLY_INFO, &information);
        }
        self.option_reply(wire::REPLY_ACK, &[]);
        self.is_negotiated = true;
        true
    }

    fn parse_request(&mut self) -> bool {
        let input = &self.input;
        let (command, bytes) = (be16(input, 6), be32(input, 24));
        let length = wire::REQUEST_BYTES + if command == wire::WRITE { bytes as usize } else { 0 };
        if input.len() < wire::REQUEST_BYTES || input.len() < length {
            return false;
        }
        assert_eq!(be32(input, 0), wire::REQUEST);
        let (flags, cookie, offset) = (be16(input, 4), be64(input, 8), be64(input, 16));
        let data = input[wire::REQUEST_BYTES..length].to_vec();
        self.input.drain(..length);
        self.received.push(Received { command, flags, cookie, offset, bytes, data });
        true
    }
}

impl Stream for Server {
    fn open(&mut self) {
        self.reset();
        self.output.clear();
        if self.is_listening {
            self.status = Status::Open;
            self.connections += 1;
            self.greet(wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
        }
    }

    fn status(&mut self) -> Status {
        self.status
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        if self.status != Status::Open {
            return 0;
        }
        let most = bytes.len().min(self.room);
        self.input.extend(&bytes[..most]);
        self.parse();
        most
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        let most = into.len().min(self.output.len()).min(self.room);
        into.iter_mut().zip(self.output.drain(..most)).for_each(|(into, byte)| *into = byte);
        most
    }

    fn reset(&mut self) {
        self.status = Status::Closed;
        (self.is_negotiated, self.has_flags) = (false, false);
        self.input.clear();
        self.received.clear();
    }
}
