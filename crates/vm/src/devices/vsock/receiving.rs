// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets that the driver receives.

use ::virtio::{Chain, Fault};
use vsock::{Address, HEADER_BYTES, HOST_CID, Header, Key, Operation};

use super::device::{RECEIVE, Vsock};
use super::sending::Packet;
use crate::devices::virtio::{Io, Place, Source, Unreachable};

/// Buffers that one call fills, and bytes of data in each: no sender keeps the device for long.
const BUFFERS: u32 = 16;
const PIECE_BYTES: u32 = 64 << 10;

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The receiver has all of it.
    All,
    /// It has a part of it, and may have room for more.
    Part,
    /// It has no buffers for the rest of it.
    Full,
    /// It knows of no such connection, or has no room that it has stated: the connection is reset.
    Refused,
    /// The sender's driver has violated the specification.
    Sender(Fault),
}

/// Where the data of a packet is.
#[derive(Clone, Copy)]
enum Data<'a> {
    /// In this chain of another guest's memory, behind a header.
    Chain(&'a Chain, &'a dyn Source),
    /// With the host.
    Host([&'a [u8]; 2]),
}

impl Vsock {
    /// Receives a packet of another device's, which is in this chain of the `source`'s memory, or a part of it.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn receive(
        &mut self,
        packet: &mut Packet,
        (chain, source): (&Chain, &dyn Source),
        io: &mut Io<'_>,
    ) -> Result<Received, Fault> {
        self.receive_from(packet, Data::Chain(chain, source), io)
    }

    /// Receives a packet of the host's with this data, or a part of it.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_of_host(
        &mut self,
        packet: &mut Packet,
        data: [&[u8]; 2],
        io: &mut Io<'_>,
    ) -> Result<Received, Fault> {
        self.receive_from(packet, Data::Host(data), io)
    }

    fn receive_from(&mut self, packet: &mut Packet, data: Data<'_>, io: &mut Io<'_>) -> Result<Received, Fault> {
        if !io.is_enabled(RECEIVE) {
            return Ok(Received::Refused);
        }
        self.flush(io)?;
        let header = packet.header;
        let is_refused = self.connections.receive(&header, header.bytes - packet.passed).is_err();
        if is_refused || header.operation == Some(Operation::Reset) {
            self.reset_end(header.destination.port, header.source, io)?;
            return Ok(if is_refused { Received::Refused } else { Received::All });
        }
        let received = self.fill(packet, data, io)?;
        if received == Received::Full {
            self.connections.undo_receive(&header);
        }
        io.publish(RECEIVE)?;
        Ok(received)
    }

    /// The other end of a connection is gone: the driver gets RST.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn reset_end(&mut self, own_port: u32, peer: Address, io: &mut Io<'_>) -> Result<(), Fault> {
        self.connections.reset(own_port, peer);
        self.flush(io)
    }

    /// A guest is gone, or has lost its connections: the driver gets RST for each.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn reset_all_of(&mut self, peer_cid: u32, io: &mut Io<'_>) -> Result<(), Fault> {
        self.connections.reset_all_of(peer_cid);
        self.flush(io)
    }

    /// The other ends of all connections are gone: the driver gets RST for each.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn reset_all(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        self.connections.reset_where(&|_| true);
        self.flush(io)
    }

    /// The host's ends of these connections are gone: the driver gets RST for each.
    ///
    /// # Errors
    /// The [`Fault`] of this device's driver.
    pub fn reset_of_host(&mut self, is_gone: &dyn Fn(&Key) -> bool, io: &mut Io<'_>) -> Result<(), Fault> {
        self.connections.reset_where(&|key| key.peer.cid == HOST_CID && is_gone(key));
        self.flush(io)
    }

    /// Sends the driver the RST packets that wait, as far as it has buffers; it notifies the device of further ones.
    pub(super) fn flush(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        let mut has_sent = false;
        while let Some(reset) = self.refused.first().copied().or_else(|| self.connections.next_reset()) {
            if !io.is_enabled(RECEIVE) {
                break;
            }
            if !io.take(RECEIVE, &mut self.buffer)? {
                if io.enable_notifications(RECEIVE)? {
                    continue;
                }
                break;
            }
            self.put(&reset, 0, io)?;
            has_sent = true;
            match self.refused.pop_at(0) {
                Some(_) => {}
                None => self.connections.take_reset(&reset),
            }
        }
        if has_sent { io.publish(RECEIVE) } else { Ok(()) }
    }

    /// Fills buffers with the rest of a packet.
    fn fill(&mut self, packet: &mut Packet, data: Data<'_>, io: &mut Io<'_>) -> Result<Received, Fault> {
        for _ in 0..BUFFERS {
            if !io.take(RECEIVE, &mut self.buffer)? {
                return Ok(Received::Full);
            }
            let left = packet.header.bytes - packet.passed;
            let most = self.buffer.writable_bytes().saturating_sub(HEADER_BYTES as u32);
            let bytes = left.min(most).min(PIECE_BYTES);
            if bytes == 0 && left > 0 {
                return Err(Fault::Request("a buffer for packets has no room for data"));
            }
            match data {
                Data::Host(pieces) => self.write(packet.passed, bytes, pieces, io)?,
                Data::Chain(chain, source) => match self.copy(packet, bytes, (chain, source)) {
                    Ok(()) => {}
                    Err(Unreachable::Receiver(outside)) => return Err(outside.into()),
                    Err(Unreachable::Sender(outside)) => {
                        io.put_back(RECEIVE);
                        return Ok(Received::Sender(outside.into()));
                    }
                },
            }
            self.put(&packet.header, bytes, io)?;
            self.connections.note_received(&packet.header, bytes);
            packet.passed += bytes;
            if packet.passed == packet.header.bytes {
                return Ok(Received::All);
            }
        }
        Ok(Received::Part)
    }

    /// Copies data that the receiver does not have yet into its buffer, behind the place of the header.
    fn copy(&self, packet: &Packet, bytes: u32, (chain, source): (&Chain, &dyn Source)) -> Result<(), Unreachable> {
        let mut from = Place::at(chain.readable(), HEADER_BYTES + packet.passed as usize);
        let mut to = Place::at(self.buffer.writable(), HEADER_BYTES);
        let mut left = bytes as usize;
        while let Some((into, most)) = to.piece(left) {
            // The chain has as many bytes as its header states.
            let Some((at, most)) = from.piece(most) else { break };
            source.copy(at, into, most)?;
            from.advance(most);
            to.advance(most);
            left -= most;
        }
        Ok(())
    }

    /// Writes the host's data, from a byte on, into the receiver's buffer, behind the place of the header.
    fn write(&self, passed: u32, bytes: u32, pieces: [&[u8]; 2], io: &Io<'_>) -> Result<(), Fault> {
        let (mut skipped, mut at, mut left) = (passed as usize, HEADER_BYTES as u32, bytes as usize);
        for piece in pieces {
            let behind = piece.get(skipped..).unwrap_or_default();
            skipped = skipped.saturating_sub(piece.len());
            let part = &behind[..left.min(behind.len())];
            at += self.buffer.write(io.memory, at, part)? as u32;
            left -= part.len();
        }
        Ok(())
    }

    /// Gives the driver the buffer, with a header before so many bytes of data.
    fn put(&self, header: &Header, bytes: u32, io: &mut Io<'_>) -> Result<(), Fault> {
        let header = Header { bytes, ..*header }.bytes();
        if self.buffer.write(io.memory, 0, &header)? < HEADER_BYTES {
            return Err(Fault::Request("a buffer for packets has no room for a header"));
        }
        io.complete(RECEIVE, self.buffer.head(), HEADER_BYTES as u32 + bytes)
    }
}
