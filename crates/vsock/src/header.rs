// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of a packet (section 5.10.6).

/// Bytes of a header.
pub const HEADER_BYTES: usize = 44;
/// The type of stream sockets, the only one here (section 5.10.6.2).
pub const STREAM: u16 = 1;
/// The host's context identifier (section 5.10.4).
pub const HOST_CID: u32 = 2;
/// The first and the last identifier of a guest: those around them are reserved.
pub const FIRST_CID: u32 = 3;
/// See [`FIRST_CID`].
pub const LAST_CID: u32 = u32::MAX - 1;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The context identifier.
    pub cid: u32,
    /// The port.
    pub port: u32,
}

/// The operation of a packet (section 5.10.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens a connection.
    Request,
    /// Accepts it.
    Response,
    /// Ends or refuses it.
    Reset,
    /// States that there will be no more data.
    Shutdown,
    /// Data.
    Data,
    /// States buffer space.
    CreditUpdate,
    /// Asks for such a statement.
    CreditRequest,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::Request,
        Self::Response,
        Self::Reset,
        Self::Shutdown,
        Self::Data,
        Self::CreditUpdate,
        Self::CreditRequest,
    ];

    fn from_number(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A packet's header as its driver wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where it comes from; the upper half of an identifier is reserved.
    pub source: Address,
    /// Where it goes.
    pub destination: Address,
    /// Bytes of data behind it.
    pub bytes: u32,
    /// Its operation and the type of its sockets; `None` if these are unknown.
    pub operation: Option<Operation>,
    /// Flags of the operation.
    pub flags: u32,
    /// Bytes of the source's receive buffer (`buf_alloc`).
    pub buffer_bytes: u32,
    /// Bytes that the source has received and consumed, modulo 2^32 (`fwd_cnt`).
    pub consumed: u32,
}

impl Header {
    /// The header in these bytes; `None` if an identifier is none of 32 bits.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let at = |place: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[place + byte]));
        let half = |place: usize| u16::from_le_bytes([bytes[place], bytes[place + 1]]);
        if at(4) != 0 || at(12) != 0 {
            return None;
        }
        let operation = Operation::from_number(half(30)).filter(|_| half(28) == STREAM);
        Some(Self {
            source: Address { cid: at(0), port: at(16) },
            destination: Address { cid: at(8), port: at(20) },
            bytes: at(24),
            operation,
            flags: at(32),
            buffer_bytes: at(36),
            consumed: at(40),
        })
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let operation = self.operation.map_or(0, |operation| operation as u32 + 1);
        let words = [
            (0, self.source.cid),
            (8, self.destination.cid),
            (16, self.source.port),
            (20, self.destination.port),
            (24, self.bytes),
            (28, operation << 16 | u32::from(STREAM)),
            (32, self.flags),
            (36, self.buffer_bytes),
            (40, self.consumed),
        ];
        words.into_iter().for_each(|(at, word)| bytes[at..at + 4].copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// The packet that resets a connection, from one end to the other.
    pub const fn reset(source: Address, destination: Address) -> Self {
        let operation = Some(Operation::Reset);
        Self { source, destination, bytes: 0, operation, flags: 0, buffer_bytes: 0, consumed: 0 }
    }
}
