// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connections of one guest.

use alloc::vec::Vec;

use crate::connection::{Connection, Key, Phase};
use crate::header::{Address, Header, Operation};

/// The most connections of a guest.
pub const CONNECTIONS: usize = 1024;
/// The most of them that one other guest has a part in: so that it does not take those of others.
pub const CONNECTIONS_OF_PEER: usize = 128;

/// A packet goes no further: its sender gets RST, and neither end knows the connection any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// A state that no table can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistent;

/// The connections of one guest, in order of their keys. It has memory for all of them from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    cid: u32,
    all: Vec<Connection>,
    /// Those that are [`Phase::Gone`].
    gone: usize,
}

impl Connections {
    /// None yet, of the guest with this identifier.
    pub fn new(cid: u32) -> Self {
        Self { cid, all: Vec::with_capacity(CONNECTIONS), gone: 0 }
    }

    /// The guest's identifier.
    pub fn cid(&self) -> u32 {
        self.cid
    }

    /// All of them.
    pub fn all(&self) -> &[Connection] {
        &self.all
    }

    /// Goes on with these.
    ///
    /// # Errors
    /// [`Inconsistent`] if they are too many, not in order, or not possible; then there are none.
    pub fn restore(&mut self, all: impl Iterator<Item = Connection>) -> Result<(), Inconsistent> {
        self.clear();
        for connection in all {
            let is_next = self.all.last().is_none_or(|last| last.key < connection.key);
            if !is_next || !connection.is_possible() || self.all.len() == CONNECTIONS {
                self.clear();
                return Err(Inconsistent);
            }
            self.gone += usize::from(connection.phase == Phase::Gone);
            self.all.push(connection);
        }
        Ok(())
    }

    /// Removes all of them: the driver has reset its device.
    pub fn clear(&mut self) {
        self.all.clear();
        self.gone = 0;
    }

    /// The guest sends a packet from one of its ports; it may open a connection if `may_connect`. A packet that waits
    /// for the receiver is sent again and passes again. Returns whether the packet goes on to the receiver.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn send(&mut self, header: &Header, may_connect: bool) -> Result<bool, Refused> {
        let key = Key { own_port: header.source.port, peer: header.destination };
        let place = self.find(key);
        let operation = header.operation.ok_or(Refused)?;
        match (place, operation) {
            (Ok(at), Operation::Reset) => {
                self.remove(at);
                Ok(true)
            }
            // It answers what was sent to it before it had reset its device.
            (Err(_), Operation::Reset) => Ok(false),
            (Err(at), Operation::Request) if may_connect => {
                self.insert(at, Connection::new(key, Phase::Requested))?;
                self.note_room(at, header)
            }
            (Ok(at), _) if may_send(self.all[at].phase, operation) => {
                if operation == Operation::Response {
                    self.all[at].phase = Phase::Open;
                }
                self.note_room(at, header)
            }
            // Its driver learns that soon.
            (Ok(at), _) if self.all[at].phase == Phase::Gone => Ok(false),
            _ => Err(Refused),
        }
    }

    /// Another guest's packet comes to one of the guest's ports, of whose data `left` bytes are still to be received.
    ///
    /// # Errors
    /// [`Refused`]: the guest has no such connection, too many, or no room that it has stated.
    pub fn receive(&mut self, header: &Header, left: u32) -> Result<(), Refused> {
        let key = Key { own_port: header.destination.port, peer: header.source };
        let place = self.find(key);
        match (place, header.operation.ok_or(Refused)?) {
            (Err(at), Operation::Request) => self.insert(at, Connection::new(key, Phase::Offered)),
            (Ok(at), operation) if may_receive(&self.all[at], operation, left) => {
                if operation == Operation::Response {
                    self.all[at].phase = Phase::Open;
                }
                Ok(())
            }
            _ => Err(Refused),
        }
    }

    /// The guest has received so many bytes of a packet's data; of a connection that is gone meanwhile, nothing.
    pub fn note_received(&mut self, header: &Header, bytes: u32) {
        if let Ok(at) = self.find(Key { own_port: header.destination.port, peer: header.source }) {
            let connection = &mut self.all[at];
            connection.delivered = connection.delivered.wrapping_add(bytes);
        }
    }

    /// Undoes what [`receive`](Self::receive) has noted of a packet that did not reach the guest: there was no place
    /// for it.
    pub fn undo_receive(&mut self, header: &Header) {
        let key = Key { own_port: header.destination.port, peer: header.source };
        match (self.find(key), header.operation) {
            (Ok(at), Some(Operation::Request)) => self.remove(at),
            (Ok(at), Some(Operation::Response)) => self.all[at].phase = Phase::Requested,
            _ => {}
        }
    }

    /// Removes a connection whose guest is sent RST for a packet that was refused.
    pub fn discard(&mut self, own_port: u32, peer: Address) {
        if let Ok(at) = self.find(Key { own_port, peer }) {
            self.remove(at);
        }
    }

    /// The other end of a connection is gone: the guest is to be sent RST.
    pub fn reset(&mut self, own_port: u32, peer: Address) {
        if let Ok(at) = self.find(Key { own_port, peer }) {
            self.mark_gone(at);
        }
    }

    /// All ends at another guest are gone.
    pub fn reset_all_of(&mut self, peer_cid: u32) {
        self.reset_where(&|key| key.peer.cid == peer_cid);
    }

    /// All these ends are gone.
    pub fn reset_where(&mut self, is_gone: &dyn Fn(&Key) -> bool) {
        for at in 0..self.all.len() {
            if is_gone(&self.all[at].key) {
                self.mark_gone(at);
            }
        }
    }

    /// The RST that the guest is to be sent next. It is [taken](Self::take_reset) once it is.
    pub fn next_reset(&self) -> Option<Header> {
        let gone = self.all.iter().find(|connection| self.gone > 0 && connection.phase == Phase::Gone)?;
        Some(Header::reset(gone.key.peer, Address { cid: self.cid, port: gone.key.own_port }))
    }

    /// The guest has been sent this RST.
    pub fn take_reset(&mut self, reset: &Header) {
        self.discard(reset.destination.port, reset.source);
    }

    fn find(&self, key: Key) -> Result<usize, usize> {
        self.all.binary_search_by_key(&key, |connection| connection.key)
    }

    fn insert(&mut self, at: usize, connection: Connection) -> Result<(), Refused> {
        let is_of_peer = |other: &&Connection| other.key.peer.cid == connection.key.peer.cid;
        if self.all.len() == CONNECTIONS || self.all.iter().filter(is_of_peer).count() >= CONNECTIONS_OF_PEER {
            return Err(Refused);
        }
        self.all.insert(at, connection);
        Ok(())
    }

    fn remove(&mut self, at: usize) {
        self.gone -= usize::from(self.all[at].phase == Phase::Gone);
        self.all.remove(at);
    }

    fn mark_gone(&mut self, at: usize) {
        if self.all[at].phase != Phase::Gone {
            (self.all[at].phase, self.gone) = (Phase::Gone, self.gone + 1);
        }
    }

    fn note_room(&mut self, at: usize, header: &Header) -> Result<bool, Refused> {
        self.all[at].note_room(header);
        Ok(true)
    }
}

/// Whether a guest may send this. Where that is the same, a packet that it sends twice is found by the receiver.
fn may_send(phase: Phase, operation: Operation) -> bool {
    match operation {
        Operation::Request => phase == Phase::Requested,
        Operation::Response => matches!(phase, Phase::Offered | Phase::Open),
        Operation::Data => phase == Phase::Open,
        Operation::Shutdown | Operation::CreditUpdate | Operation::CreditRequest => phase != Phase::Gone,
        Operation::Reset => true,
    }
}

fn may_receive(connection: &Connection, operation: Operation, left: u32) -> bool {
    let phase = connection.phase;
    match operation {
        Operation::Request => false,
        Operation::Response => phase == Phase::Requested,
        Operation::Data => phase == Phase::Open && left <= connection.room(),
        Operation::Shutdown | Operation::CreditUpdate | Operation::CreditRequest => phase != Phase::Gone,
        Operation::Reset => true,
    }
}
