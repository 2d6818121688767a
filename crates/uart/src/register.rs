// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers (PC16550D data sheet, section 8.0, table II).

use bitflags::bitflags;

/// A register by its offset. Its content may depend on the direction and on [`LineControl::DIVISOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Register {
    /// Read: the next byte received. Written: a byte to send. With the divisor latch open: its low half.
    Data = 0,
    /// [`Interrupts`] that are wanted. With the divisor latch open: its high half.
    Interrupts = 1,
    /// Read: [`Identification`]. Written: [`FifoControl`].
    Fifo = 2,
    /// [`LineControl`].
    LineControl = 3,
    /// [`ModemControl`].
    ModemControl = 4,
    /// [`LineStatus`].
    LineStatus = 5,
    /// The modem's lines.
    ModemStatus = 6,
    /// A byte of memory; the 8250 has none.
    Scratch = 7,
}

bitflags! {
    /// Causes of a UART's interrupts (section 8.7).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Interrupts: u8 {
        /// Bytes have arrived.
        const RECEIVED = 1 << 0;
        /// The transmitter's FIFO or holding register is empty.
        const TRANSMITTER_EMPTY = 1 << 1;
    }

    /// The pending interrupt, and the FIFO's presence (section 8.6).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Identification: u8 {
        /// Cause of the interrupt.
        const CAUSE = 0b1111;
        /// The receiver has as many bytes as it interrupts at.
        const RECEIVED = 0b0100;
        /// The FIFO has 64 bytes and all are in use (TL16C750).
        const FIFO_64 = 1 << 5;
        /// There is a FIFO; alone, it is the 16550's, which loses bytes.
        const FIFO = 1 << 7;
        /// The FIFO works.
        const FIFO_WORKS = 1 << 6;
    }

    /// The FIFOs' switches (section 8.5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FifoControl: u8 {
        /// Both are on.
        const ENABLE = 1 << 0;
        /// The receiver's is emptied.
        const CLEAR_RECEIVER = 1 << 1;
        /// The transmitter's is emptied.
        const CLEAR_TRANSMITTER = 1 << 2;
        /// Of 64 bytes instead of 16 (TL16C750; taken only while the divisor latch is open).
        const DEPTH_64 = 1 << 5;
        /// The receiver interrupts at 14 bytes, or when nothing follows fewer.
        const TRIGGER_14 = 0b11 << 6;
    }

    /// The format of a byte (section 8.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LineControl: u8 {
        /// Eight bits, no parity, one stop bit.
        const EIGHT_BITS = 0b11;
        /// Offsets 0 and 1 are the divisor latch.
        const DIVISOR = 1 << 7;
    }

    /// The modem's lines (section 8.8).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ModemControl: u8 {
        /// Data terminal ready.
        const READY = 1 << 0;
        /// Request to send.
        const REQUEST = 1 << 1;
        /// On a PC: the interrupt leaves the UART.
        const INTERRUPT_GATE = 1 << 3;
        /// Loopback: sent bytes are received; nothing is sent on the line.
        const LOOPBACK = 1 << 4;
    }

    /// Status of the line (section 8.4).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LineStatus: u8 {
        /// A byte has been received.
        const DATA_READY = 1 << 0;
        /// The transmitter's FIFO or holding register is empty.
        const TRANSMITTER_EMPTY = 1 << 5;
        /// The shift register is empty as well: nothing is on its way.
        const LINE_IDLE = 1 << 6;
    }
}

/// Value of a read that no device drives.
pub(crate) const FLOATING: u8 = 0xff;
