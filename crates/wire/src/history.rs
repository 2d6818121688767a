// SPDX-License-Identifier: MIT OR Apache-2.0
//! The newest events of a host, and the bytes in which the next image finds them.
//!
//! Each event is kept twice: as it is sent, and as it is handed over. So a hand-over, for which guests wait, copies
//! bytes and encodes nothing.
//!
//! In the bytes, an event is its length (two bytes, little endian) and its [encoding](crate::format). Its kind is not
//! read, only sent ([`EventKind::Encoded`]): so kinds that only another release knows are not lost.

use alloc::collections::VecDeque;

use serde::Serialize as _;

use crate::{Event, EventKind};
use cbor::{Error, Full, Reader, Sink, Writer};

/// Events that are kept.
pub const KEPT_EVENTS: usize = 256;
/// Bytes for the next image; the oldest events give way.
pub const HISTORY_BYTES: usize = 16 * 1024;
/// Bytes of the longest event that is handed over: a name and a reason, with room to spare.
const MAX_EVENT_BYTES: usize = 512;
const LENGTH_BYTES: usize = 2;
/// Fields of an event.
const FIELDS: u64 = 3;

/// The newest events.
#[derive(Debug)]
pub struct History {
    kept: VecDeque<Event>,
    /// The newest of them, encoded.
    bytes: VecDeque<u8>,
    next_sequence: u64,
}

impl History {
    /// Creates a history without events.
    pub const fn new() -> Self {
        Self { kept: VecDeque::new(), bytes: VecDeque::new(), next_sequence: 0 }
    }

    /// Adds an event, and gives it its number.
    pub fn push(&mut self, time_ns: u64, kind: EventKind) {
        let event = Event { sequence: self.next_sequence, time_ns, kind };
        self.next_sequence += 1;
        self.keep(event);
    }

    /// Returns the number that the next event gets.
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Shows the kept events from `sequence` on while `visit` returns true; returns the number to ask for next.
    pub fn visit(&self, sequence: u64, mut visit: impl FnMut(&Event) -> bool) -> u64 {
        let mut next = sequence;
        for event in self.kept.iter().filter(|event| event.sequence >= sequence) {
            if !visit(event) {
                return next;
            }
            next = event.sequence + 1;
        }
        next
    }

    /// Returns what the next image is given, in two pieces.
    pub fn bytes(&self) -> (&[u8], &[u8]) {
        self.bytes.as_slices()
    }

    /// Takes over what an image before has left: its events come before those that are here, which get new numbers from
    /// `next_sequence` on.
    pub fn adopt(&mut self, bytes: &[u8], next_sequence: u64) {
        let own = core::mem::take(&mut self.kept);
        let next_sequence = next_sequence.max(self.next_sequence - own.len() as u64);
        self.bytes.clear();
        let inherited = Events(bytes).flatten().filter(|event| event.sequence < next_sequence);
        inherited.for_each(|event| self.keep(event));
        self.next_sequence = next_sequence;
        own.into_iter().for_each(|event| self.push(event.time_ns, event.kind));
    }

    fn keep(&mut self, event: Event) {
        let mut encoded = Encoded { bytes: [0; MAX_EVENT_BYTES], filled: 0 };
        if event.serialize(&mut Writer::new(&mut encoded)).is_ok() {
            self.bytes.extend((encoded.filled as u16).to_le_bytes());
            self.bytes.extend(&encoded.bytes[..encoded.filled]);
        }
        while self.bytes.len() > HISTORY_BYTES {
            self.drop_oldest_bytes();
        }
        if self.kept.len() == KEPT_EVENTS {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
    }

    fn drop_oldest_bytes(&mut self) {
        let length =
            self.bytes.iter().take(LENGTH_BYTES).rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let end = (LENGTH_BYTES + length).min(self.bytes.len());
        self.bytes.drain(..end);
    }
}

impl Default for History {
    fn default() -> Self {
        Self::new()
    }
}

/// Events in bytes of untrusted origin: `Some(None)` for one that cannot be read.
struct Events<'a>(&'a [u8]);

impl Iterator for Events<'_> {
    type Item = Option<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk::<LENGTH_BYTES>()?;
        let (bytes, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        self.0 = rest;
        Some(event(bytes).ok())
    }
}

/// Reads an event, and passes over what a newer release may have behind it.
fn event(bytes: &[u8]) -> Result<Event, Error> {
    let mut reader = Reader::new(bytes);
    let more = reader.array()?.checked_sub(FIELDS).ok_or(Error::Malformed)?;
    let (sequence, time_ns) = (reader.u64()?, reader.u64()?);
    let kind = EventKind::Encoded(reader.raw()?);
    reader.skip(more)?;
    if reader.is_at_end() { Ok(Event { sequence, time_ns, kind }) } else { Err(Error::Malformed) }
}

/// An event's bytes, of which there are few.
struct Encoded {
    bytes: [u8; MAX_EVENT_BYTES],
    filled: usize,
}

impl Sink for Encoded {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let place = self.bytes.get_mut(self.filled..self.filled + bytes.len()).ok_or(Full)?;
        place.copy_from_slice(bytes);
        self.filled += bytes.len();
        Ok(())
    }
}
