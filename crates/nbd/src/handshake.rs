// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fixed newstyle negotiation: greeting, `NBD_OPT_GO`, and what the server states of the export.

use arrayvec::ArrayVec;

use crate::export::Export;
use crate::limits::{NAME_BYTES, OPTION_BYTES, OPTION_REPLIES};
use crate::problem::Problem;
use crate::stream::Stream;
use crate::wire::{self, be16, be32, be64};

/// Flags, option header, length and name, one request for information.
const OUTPUT_BYTES: usize = 4 + 16 + 4 + NAME_BYTES + 4;
/// The longest part that is checked.
const INPUT_BYTES: usize = 20;

/// The part of the negotiation that is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Greeting,
    /// The header of a reply to the option.
    Reply,
    /// The first bytes of a reply's data.
    Information,
}

/// A negotiation.
#[derive(Clone, Debug)]
pub struct Handshake {
    step: Step,
    input: [u8; INPUT_BYTES],
    got: usize,
    wanted: usize,
    /// Bytes behind those of this reply that are checked, and those that are skipped now.
    behind: u32,
    skipped: u32,
    replies: u32,
    output: ArrayVec<u8, OUTPUT_BYTES>,
    sent: usize,
    size: Option<(u64, u16)>,
    blocks: Option<(u32, u32)>,
}

impl Handshake {
    pub const fn new() -> Self {
        Self {
            step: Step::Greeting,
            input: [0; INPUT_BYTES],
            got: 0,
            wanted: wire::GREETING_BYTES,
            behind: 0,
            skipped: 0,
            replies: 0,
            output: ArrayVec::new_const(),
            sent: 0,
            size: None,
            blocks: None,
        }
    }

    /// Goes on as far as there are bytes and room; the export once it is negotiated.
    ///
    /// # Errors
    /// The [`Problem`] with this server.
    pub fn turn<S: Stream + ?Sized>(&mut self, name: &str, stream: &mut S) -> Result<Option<Export>, Problem> {
        loop {
            if !self.send(stream) || !self.receive(stream) {
                return Ok(None);
            }
            if let Some(export) = self.advance(name)? {
                return Ok(Some(export));
            }
        }
    }

    /// Sends what is to be sent; false if there is no room for all of it yet.
    fn send<S: Stream + ?Sized>(&mut self, stream: &mut S) -> bool {
        while self.sent < self.output.len() {
            let sent = stream.send(&self.output[self.sent..]);
            if sent == 0 {
                return false;
            }
            self.sent += sent;
        }
        true
    }

    /// Receives the next part, and nothing beyond; false if it has not arrived.
    fn receive<S: Stream + ?Sized>(&mut self, stream: &mut S) -> bool {
        while self.skipped > 0 {
            let mut piece = [0; 64];
            let most = piece.len().min(self.skipped as usize);
            let received = stream.receive(&mut piece[..most]);
            if received == 0 {
                return false;
            }
            self.skipped -= received as u32;
        }
        while self.got < self.wanted {
            let received = stream.receive(&mut self.input[self.got..self.wanted]);
            if received == 0 {
                return false;
            }
            self.got += received;
        }
        true
    }

    fn advance(&mut self, name: &str) -> Result<Option<Export>, Problem> {
        self.got = 0;
        match self.step {
            Step::Greeting => self.answer(name)?,
            Step::Reply => return self.reply(),
            Step::Information => {
                self.note_information();
                self.skipped = core::mem::take(&mut self.behind);
                self.expect(Step::Reply, wire::OPTION_REPLY_BYTES);
            }
        }
        Ok(None)
    }

    fn expect(&mut self, step: Step, bytes: usize) {
        (self.step, self.wanted) = (step, bytes);
    }

    /// Answers the greeting, and asks for the export.
    fn answer(&mut self, name: &str) -> Result<(), Problem> {
        let flags = be16(&self.input, 16);
        let is_server = be64(&self.input, 0) == wire::GREETING && be64(&self.input, 8) == wire::OPTION;
        if !is_server || flags & wire::FIXED_NEWSTYLE == 0 {
            return Err(Problem::Greeting);
        }
        let name = name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes());
        let answer = u32::from(flags & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES));
        let bytes = name.len() as u32;
        self.put(&answer.to_be_bytes());
        self.put(&wire::OPTION.to_be_bytes());
        self.put(&wire::OPTION_GO.to_be_bytes());
        self.put(&(4 + bytes + 4).to_be_bytes());
        self.put(&bytes.to_be_bytes());
        self.put(name);
        self.put(&1u16.to_be_bytes());
        self.put(&wire::INFO_BLOCK_SIZE.to_be_bytes());
        self.expect(Step::Reply, wire::OPTION_REPLY_BYTES);
        Ok(())
    }

    /// Appends bytes of the answer, all of which fits: see [`OUTPUT_BYTES`].
    fn put(&mut self, bytes: &[u8]) {
        let _ = self.output.try_extend_from_slice(bytes);
    }

    fn reply(&mut self) -> Result<Option<Export>, Problem> {
        let (kind, bytes) = (be32(&self.input, 12), be32(&self.input, 16));
        if be64(&self.input, 0) != wire::OPTION_REPLY || be32(&self.input, 8) != wire::OPTION_GO {
            return Err(Problem::OptionReply);
        }
        self.replies += 1;
        if bytes > OPTION_BYTES || self.replies > OPTION_REPLIES {
            return Err(Problem::LongOption);
        }
        match kind {
            wire::REPLY_ACK if bytes == 0 => {
                let (size, flags) = self.size.ok_or(Problem::NoDescription)?;
                return Export::new(size, flags, self.blocks).map(Some);
            }
            wire::REPLY_INFO if bytes >= 2 => {
                let wanted = INPUT_BYTES.min(bytes as usize);
                self.input = [0; INPUT_BYTES];
                self.expect(Step::Information, wanted);
                self.behind = bytes - wanted as u32;
            }
            _ if kind & wire::REPLY_ERROR != 0 => return Err(Problem::NoExport { error: kind & !wire::REPLY_ERROR }),
            _ => return Err(Problem::OptionReply),
        }
        Ok(None)
    }

    fn note_information(&mut self) {
        let input = &self.input;
        match (be16(input, 0), self.wanted) {
            (wire::INFO_EXPORT, 12) => self.size = Some((be64(input, 2), be16(input, 10))),
            (wire::INFO_BLOCK_SIZE, 14) => self.blocks = Some((be32(input, 2), be32(input, 10))),
            // Any other is of no interest.
            _ => {}
        }
    }
}
