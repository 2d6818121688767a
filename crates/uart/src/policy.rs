// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policy for a UART, and counters of its results.

/// Number of bytes that follow a poll of the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One: each byte waits until the one before has left. The baseline.
    Byte,
    /// As many as the FIFO holds.
    Fifo,
}

/// Longest wait for a transmitter that does not become empty, in times that its FIFO takes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience(pub u32);

impl Patience {
    /// A wait that no working UART needs: 45 ms with 16 bytes at 115,200 baud.
    pub const USUAL: Self = Self(32);
    /// For output that no CPU can print later: 1.4 s.
    pub const LAST_WORDS: Self = Self(1024);
}

/// Counts of a UART's events since it was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes given to the transmitter.
    pub bytes: u64,
    /// Polls of the line's status.
    pub status_reads: u64,
    /// Polls that found the transmitter empty.
    pub fills: u64,
    /// Number of times that it was dropped because it stood still or was gone.
    pub drops: u64,
    /// Bytes that [`Uart::send`] gave up.
    pub refused_bytes: u64,
}
