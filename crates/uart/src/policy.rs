// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a UART is to be driven, and what has come of it.

/// How many bytes follow a sample of the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One: each byte waits until the one before has left. The baseline.
    Byte,
    /// As many as the FIFO holds.
    Fifo,
}

/// How long a transmitter that does not become empty is waited for, in times that its FIFO takes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience(pub u32);

impl Patience {
    /// What a UART that lives never needs: 45 ms with 16 bytes at 115,200 baud.
    pub const USUAL: Self = Self(32);
    /// For what nobody can print later: 1.4 s.
    pub const LAST_WORDS: Self = Self(1024);
}

/// What has happened on a UART, since it was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes given to the transmitter.
    pub bytes: u64,
    /// Polls of the line's status.
    pub looks: u64,
    /// Looks that found the transmitter empty.
    pub fills: u64,
    /// How often it was dropped because it stood still or was gone.
    pub drops: u64,
    /// Bytes that [`Uart::send`] gave up.
    pub refused_bytes: u64,
}
