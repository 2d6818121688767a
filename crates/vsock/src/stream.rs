// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own end of a connection to a guest (section 5.10.6): two buffers, and the credit of both sides.
//!
//! ```text
//! host: send ──► buffer ──► next, note_sent ──► the guest's table and buffers
//! host: receive ◄── buffer ◄── accept, note_received ◄── the guest's packets
//! ```
//!
//! The buffers are all that the host holds: a guest gets credit for what is free, and nothing waits beyond it.

mod accepted;

use crate::connection::{Connection, Key, Phase as GuestPhase};
use crate::connections::Refused;
use crate::header::{Address, HOST_CID, Header, Operation};
use crate::ring::Ring;

/// Bytes of each buffer.
pub const STREAM_BYTES: usize = 64 << 10;
/// The guest is notified once so much room has become free; of less with other packets that it is sent.
const STATED_AT: u32 = STREAM_BYTES as u32 / 2;

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPhase {
    /// There is none, or the guest has ended it. Data that has arrived can still be received.
    Closed,
    /// The guest has not answered yet.
    Connecting,
    /// Bytes go both ways.
    Open,
}

/// The progress of a stream through which nothing is on its way. Numbers of bytes are modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The guest's end.
    pub peer: Address,
    /// The host's port.
    pub own_port: u32,
    /// Bytes that the guest has received.
    pub delivered: u32,
    /// Bytes up to which the guest has stated room.
    pub room_until: u32,
    /// Bytes that the host has received.
    pub consumed: u32,
}

/// A packet for the guest: its header states the bytes of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// Its header.
    pub header: Header,
    /// Its data, in up to two pieces.
    pub data: [&'a [u8]; 2],
}

/// The host's end of a stream to one port of one guest. One connection follows another, each from a port of its own.
#[derive(Clone, Debug)]
pub struct Stream {
    peer: Address,
    own_port: u32,
    phase: StreamPhase,
    /// The guest has been sent REQUEST: it knows of the connection.
    is_requested: bool,
    /// The connection before, whose end the guest does not know yet.
    ended_port: Option<u32>,
    to_guest: Ring,
    from_guest: Ring,
    /// The guest's end: what it was sent, and the room that it has stated.
    guest: Connection,
    /// Bytes that the host has taken out of its buffer, modulo 2^32; and the part of them last stated to the guest.
    consumed: u32,
    stated: u32,
    /// The guest has asked for the host's room.
    owes_credit: bool,
    /// The guest has asked for the connection, and has no answer yet.
    owes_answer: bool,
}

impl Stream {
    /// No connection yet, to this port of a guest.
    pub fn new(peer: Address) -> Self {
        Self {
            peer,
            own_port: 0,
            phase: StreamPhase::Closed,
            is_requested: false,
            ended_port: None,
            to_guest: Ring::new(STREAM_BYTES),
            from_guest: Ring::new(STREAM_BYTES),
            guest: guest_end(peer, 0),
            consumed: 0,
            stated: 0,
            owes_credit: false,
            owes_answer: false,
        }
    }

    /// The guest, and its port.
    pub fn peer(&self) -> Address {
        self.peer
    }

    /// The state of the connection.
    pub fn phase(&self) -> StreamPhase {
        self.phase
    }

    /// Begins to connect, from a port that no connection to this guest has had lately. Data of the connection before is
    /// gone.
    pub fn open(&mut self, own_port: u32) {
        self.reset();
        (self.own_port, self.phase) = (own_port, StreamPhase::Connecting);
        self.guest = guest_end(self.peer, own_port);
        (self.consumed, self.stated, self.owes_credit) = (0, 0, false);
    }

    /// Ends the connection at once: the guest gets RST if it knows of it. Data that has not arrived is gone.
    pub fn reset(&mut self) {
        if core::mem::take(&mut self.is_requested) {
            self.ended_port = Some(self.own_port);
        }
        self.close();
        self.from_guest.clear();
    }

    /// The guest does not know the connection any more: it has ended, or its driver has reset its device.
    pub fn note_gone(&mut self) {
        (self.is_requested, self.ended_port) = (false, None);
        self.close();
    }

    fn close(&mut self) {
        (self.phase, self.owes_answer) = (StreamPhase::Closed, false);
        self.to_guest.clear();
    }

    /// Sends as many of these bytes as there is room for; returns how many.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        if self.phase != StreamPhase::Open {
            return 0;
        }
        let mut sent = 0;
        for place in self.to_guest.places(bytes.len()) {
            place.copy_from_slice(&bytes[sent..sent + place.len()]);
            sent += place.len();
        }
        self.to_guest.note_filled(sent);
        sent
    }

    /// Receives bytes that have arrived; returns how many.
    pub fn receive(&mut self, into: &mut [u8]) -> usize {
        let mut received = 0;
        for piece in self.from_guest.oldest(into.len()) {
            into[received..received + piece.len()].copy_from_slice(piece);
            received += piece.len();
        }
        self.from_guest.drop_oldest(received);
        self.consumed = self.consumed.wrapping_add(received as u32);
        received
    }

    /// The packet that the guest is to be sent next, if there is one for which it has stated room.
    pub fn next(&self) -> Option<Outgoing<'_>> {
        if let Some(port) = self.ended_port {
            return Some(self.packet(Operation::Reset, port, [&[]; 2]));
        }
        match self.phase {
            StreamPhase::Connecting if !self.is_requested => {
                Some(self.packet(Operation::Request, self.own_port, [&[]; 2]))
            }
            StreamPhase::Open if self.owes_answer => Some(self.packet(Operation::Response, self.own_port, [&[]; 2])),
            StreamPhase::Open => {
                let most = (self.guest.room() as usize).min(self.to_guest.used());
                if most > 0 {
                    return Some(self.packet(Operation::Data, self.own_port, self.to_guest.oldest(most)));
                }
                let is_due = self.owes_credit || self.consumed.wrapping_sub(self.stated) >= STATED_AT;
                is_due.then(|| self.packet(Operation::CreditUpdate, self.own_port, [&[]; 2]))
            }
            _ => None,
        }
    }

    fn packet<'a>(&self, operation: Operation, own_port: u32, data: [&'a [u8]; 2]) -> Outgoing<'a> {
        let bytes = data.iter().map(|piece| piece.len() as u32).sum();
        let (source, flags) = (Address { cid: HOST_CID, port: own_port }, 0);
        let (buffer_bytes, consumed, operation) = (STREAM_BYTES as u32, self.consumed, Some(operation));
        let header = Header { source, destination: self.peer, bytes, operation, flags, buffer_bytes, consumed };
        Outgoing { header, data }
    }

    /// The guest has got a packet, or so many bytes of its data.
    pub fn note_sent(&mut self, header: &Header, bytes: u32) {
        match header.operation {
            Some(Operation::Reset) => self.ended_port = None,
            Some(Operation::Request) => self.is_requested = true,
            Some(Operation::Response) => self.owes_answer = false,
            _ => {
                self.guest.delivered = self.guest.delivered.wrapping_add(bytes);
                self.to_guest.drop_oldest(bytes as usize);
            }
        }
        if header.operation != Some(Operation::Reset) {
            (self.stated, self.owes_credit) = (header.consumed, false);
        }
    }

    /// The guest's table refuses a packet: there is no such connection.
    pub fn note_refused(&mut self, header: &Header) {
        match header.operation {
            Some(Operation::Reset) => self.ended_port = None,
            _ => self.note_gone(),
        }
    }

    /// The guest sends a packet. The places for its data are filled by the caller, which then calls
    /// [`note_received`](Self::note_received).
    ///
    /// # Errors
    /// [`Refused`]: it is of no connection of this stream, or exceeds the room that the host has stated. The connection
    /// is over, and the guest gets RST.
    pub fn accept(&mut self, header: &Header) -> Result<[&mut [u8]; 2], Refused> {
        if header.source != self.peer || header.destination.port != self.own_port || !self.is_requested {
            return Err(Refused);
        }
        let bytes = if header.operation == Some(Operation::Data) { header.bytes as usize } else { 0 };
        if !self.allows(header.operation.ok_or(Refused)?, bytes) {
            self.note_gone();
            return Err(Refused);
        }
        self.guest.note_room(header);
        Ok(self.from_guest.places(bytes))
    }

    /// Whether the guest may send this now; the connection goes on accordingly.
    fn allows(&mut self, operation: Operation, bytes: usize) -> bool {
        match operation {
            Operation::Response => {
                let was_asked = self.phase == StreamPhase::Connecting;
                if was_asked {
                    self.phase = StreamPhase::Open;
                }
                was_asked
            }
            Operation::Data => self.phase == StreamPhase::Open && bytes <= self.from_guest.free(),
            Operation::CreditUpdate => true,
            Operation::CreditRequest => {
                self.owes_credit = true;
                true
            }
            // Neither direction is of use without the other: the host answers by RST once it has taken what is there.
            Operation::Shutdown => {
                self.close();
                true
            }
            Operation::Reset => {
                self.note_gone();
                true
            }
            Operation::Request => false,
        }
    }

    /// So many bytes of an accepted packet's data are in their places.
    pub fn note_received(&mut self, bytes: u32) {
        self.from_guest.note_filled(bytes as usize);
    }
}

/// The guest's end of a connection from a port of the host's.
const fn guest_end(peer: Address, own_port: u32) -> Connection {
    let host = Address { cid: HOST_CID, port: own_port };
    Connection::new(Key { own_port: peer.port, peer: host }, GuestPhase::Open)
}
