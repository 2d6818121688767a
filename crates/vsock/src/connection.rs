// SPDX-License-Identifier: MIT OR Apache-2.0
//! One guest's end of a connection.

use crate::header::{Address, Header};

/// The largest window: half of what can be compared modulo 2^32.
const WINDOW_MOST: u32 = 1 << 30;

/// The key that distinguishes the ends of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The guest's own port.
    pub own_port: u32,
    /// The other end.
    pub peer: Address,
}

/// How far a connection is, as its guest knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The guest has asked for it.
    Requested,
    /// The guest has been asked for it.
    Offered,
    /// It is open.
    Open,
    /// The other end is gone, and the guest is still to be sent RST.
    Gone,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Requested, Self::Offered, Self::Open, Self::Gone];

    /// The phase with this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// One guest's end of a connection. Its window is the room that this guest has stated. It never shrinks: data that is
/// on the way when the guest reduces its room was allowed when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Which one it is.
    pub key: Key,
    /// How far it is.
    pub phase: Phase,
    /// Bytes that the guest has received, modulo 2^32.
    pub delivered: u32,
    /// Bytes up to which the guest has room, modulo 2^32.
    pub room_until: u32,
}

impl Connection {
    /// A new one.
    pub const fn new(key: Key, phase: Phase) -> Self {
        Self { key, phase, delivered: 0, room_until: 0 }
    }

    /// Bytes that the guest has room for.
    pub const fn room(&self) -> u32 {
        self.room_until.wrapping_sub(self.delivered)
    }

    /// The guest states its room (section 5.10.6.3). A statement that no receiver can make changes nothing.
    pub(crate) fn note_room(&mut self, header: &Header) {
        let until = header.consumed.wrapping_add(header.buffer_bytes.min(WINDOW_MOST));
        let room = until.wrapping_sub(self.delivered);
        if room <= WINDOW_MOST && room > self.room() {
            self.room_until = until;
        }
    }

    /// Whether it can be in this state.
    pub(crate) const fn is_possible(&self) -> bool {
        self.room() <= WINDOW_MOST
    }
}
