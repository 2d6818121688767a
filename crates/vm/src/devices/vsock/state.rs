// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device in the words of the hand-over.

use arrayvec::ArrayVec;
use handover::Full;
use handover::state::{self, vsock_flag};
use vsock::{Address, CONNECTIONS, Connection, Connections, Header, Key, Phase};
use zerocopy::FromBytes as _;

use super::device::{REFUSED, Vsock};
use crate::devices::{StateError, piece};

impl Vsock {
    /// The most bytes of its state.
    pub(super) const STATE_BYTES: usize =
        size_of::<state::Vsock>() + (CONNECTIONS + REFUSED) * size_of::<state::VsockConnection>();

    /// Writes its state; returns the bytes used.
    ///
    /// # Errors
    /// [`Full`] if there is no room.
    pub(super) fn write_state(&self, into: &mut [u8]) -> Result<usize, Full> {
        let all = self.connections.all();
        let head = state::Vsock {
            cid: self.cid().into(),
            passed: self.passed.into(),
            connections: (all.len() as u16).into(),
            refused: (self.refused.len() as u16).into(),
            flags: if self.was_reset { vsock_flag::RESET } else { 0 }.into(),
        };
        let mut used = piece::save(&head, into)?;
        let refused = self.refused.iter().map(|reset| {
            let key = Key { own_port: reset.destination.port, peer: reset.source };
            Connection::new(key, Phase::Gone)
        });
        for connection in all.iter().copied().chain(refused) {
            used += piece::save(&saved(&connection), into.get_mut(used..).ok_or(Full)?)?;
        }
        Ok(used)
    }

    /// Goes on from a state.
    ///
    /// # Errors
    /// [`StateError`] if no device of this guest can be in it; then it has not changed.
    pub(super) fn read_state(&mut self, from: &[u8]) -> Result<(), StateError> {
        let refuse = |reason| StateError { field: "vsock", reason };
        let (head, rest) = state::Vsock::read_from_prefix(from).map_err(|_| refuse("its state is cut off"))?;
        let (connections, behind) = (usize::from(head.connections.get()), usize::from(head.refused.get()));
        let (all, odd) = rest.as_chunks::<{ size_of::<state::VsockConnection>() }>();
        if head.cid.get() != self.cid() {
            return Err(refuse("it has another context identifier than in this bundle"));
        }
        if !odd.is_empty() || all.len() != connections + behind || behind > REFUSED || connections > CONNECTIONS {
            return Err(refuse("its connections are cut off, or too many"));
        }
        if head.flags.get() & !vsock_flag::ALL != 0 {
            return Err(refuse("a flag is unknown"));
        }
        let mut next = Connections::new(self.cid());
        let mut is_known = true;
        let mut read = |bytes: &[u8; size_of::<state::VsockConnection>()]| {
            let read = connection(bytes);
            is_known &= read.is_some();
            read
        };
        let (own, owed) = all.split_at(connections);
        next.restore(own.iter().filter_map(&mut read))
            .map_err(|_| refuse("no table of connections can be in this state"))?;
        let owed: ArrayVec<Connection, REFUSED> = owed.iter().filter_map(&mut read).collect();
        if !is_known {
            return Err(refuse("a phase of a connection is unknown"));
        }
        let end = Address { cid: self.cid(), port: 0 };
        let reset = |owed: &Connection| Header::reset(owed.key.peer, Address { port: owed.key.own_port, ..end });
        self.refused = owed.iter().map(reset).collect();
        (self.connections, self.passed) = (next, head.passed.get());
        (self.sending, self.was_reset) = (None, head.flags.get() & vsock_flag::RESET != 0);
        Ok(())
    }
}

fn saved(connection: &Connection) -> state::VsockConnection {
    let Connection { key: Key { own_port, peer }, phase, delivered, room_until } = *connection;
    state::VsockConnection {
        own_port: own_port.into(),
        peer_cid: peer.cid.into(),
        peer_port: peer.port.into(),
        phase: (phase as u32).into(),
        delivered: delivered.into(),
        room_until: room_until.into(),
    }
}

fn connection(bytes: &[u8; size_of::<state::VsockConnection>()]) -> Option<Connection> {
    let from = state::VsockConnection::ref_from_bytes(bytes).ok()?;
    let peer = Address { cid: from.peer_cid.get(), port: from.peer_port.get() };
    Some(Connection {
        key: Key { own_port: from.own_port.get(), peer },
        phase: Phase::from_number(from.phase.get())?,
        delivered: from.delivered.get(),
        room_until: from.room_until.get(),
    })
}
