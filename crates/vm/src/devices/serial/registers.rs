// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a 16550A, bit by bit (PC16550D data sheet, table II).

use super::bitflags;

/// Offsets from the first port.
pub mod offset {
    /// Receiver buffer (read), transmitter holding (write), divisor's low byte.
    pub const DATA: u8 = 0;
    /// Interrupt enable, divisor's high byte.
    pub const INTERRUPT_ENABLE: u8 = 1;
    /// Interrupt identification (read).
    pub const INTERRUPT_ID: u8 = 2;
    /// FIFO control (write).
    pub const FIFO_CONTROL: u8 = 2;
    /// Line control.
    pub const LINE_CONTROL: u8 = 3;
    /// Modem control.
    pub const MODEM_CONTROL: u8 = 4;
    /// Line status.
    pub const LINE_STATUS: u8 = 5;
    /// Modem status.
    pub const MODEM_STATUS: u8 = 6;
    /// Scratch.
    pub const SCRATCH: u8 = 7;
}

/// Values of the interrupt identification register.
pub mod interrupt_id {
    /// No interrupt is pending.
    pub const NONE: u8 = 0b0001;
    /// Modem status; cleared by reading that register.
    pub const MODEM_STATUS: u8 = 0b0000;
    /// Transmitter holding register empty; cleared by reading this register or writing a byte.
    pub const TRANSMIT_EMPTY: u8 = 0b0010;
    /// Received data, at least the trigger level.
    pub const RECEIVED: u8 = 0b0100;
    /// Received data below the trigger level that the guest has not fetched.
    pub const TIME_OUT: u8 = 0b1100;
    /// Line status; cleared by reading that register.
    pub const LINE_STATUS: u8 = 0b0110;
    /// Both FIFOs work.
    pub const FIFOS_ON: u8 = 0b1100_0000;
}

/// Line control, bit 7: offsets 0 and 1 are the divisor.
pub const DIVISOR_LATCH_ACCESS: u8 = 1 << 7;

bitflags! {
    /// Interrupt enable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InterruptEnable: u8 {
        /// Received data.
        const RECEIVED = 1 << 0;
        /// Transmitter holding register empty.
        const TRANSMIT_EMPTY = 1 << 1;
        /// Line status.
        const LINE_STATUS = 1 << 2;
        /// Modem status.
        const MODEM_STATUS = 1 << 3;
    }

    /// FIFO control.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FifoControl: u8 {
        /// Both FIFOs on.
        const ENABLE = 1 << 0;
        /// Empty the receiver's.
        const CLEAR_RECEIVE = 1 << 1;
        /// Empty the transmitter's, which it always is.
        const CLEAR_TRANSMIT = 1 << 2;
        /// The receiver's trigger level: 1, 4, 8 or 14 bytes.
        const TRIGGER = 0b11 << 6;
    }

    /// Modem control.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ModemControl: u8 {
        /// Data terminal ready.
        const DTR = 1 << 0;
        /// Request to send.
        const RTS = 1 << 1;
        /// Output 1: not connected.
        const OUT1 = 1 << 2;
        /// Output 2: on a PC, connects the interrupt line.
        const OUT2 = 1 << 3;
        /// Loopback: sent bytes are received.
        const LOOPBACK = 1 << 4;
    }

    /// Line status.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LineStatus: u8 {
        /// A byte can be read.
        const DATA_READY = 1 << 0;
        /// A byte was lost.
        const OVERRUN = 1 << 1;
        /// A byte can be written.
        const TRANSMIT_HOLDING_EMPTY = 1 << 5;
        /// All bytes are on their way.
        const TRANSMITTER_EMPTY = 1 << 6;
    }

    /// Modem status.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ModemStatus: u8 {
        /// CTS has changed.
        const CTS_CHANGED = 1 << 0;
        /// DSR has changed.
        const DSR_CHANGED = 1 << 1;
        /// Ringing has ended.
        const RI_ENDED = 1 << 2;
        /// DCD has changed.
        const DCD_CHANGED = 1 << 3;
        /// Clear to send.
        const CTS = 1 << 4;
        /// Data set ready.
        const DSR = 1 << 5;
        /// Ring.
        const RI = 1 << 6;
        /// Carrier detected.
        const DCD = 1 << 7;
    }
}

impl FifoControl {
    /// Returns what stays after a write: the clearing bits clear themselves, and without the enable nothing counts.
    pub fn kept(self) -> Self {
        if self.contains(Self::ENABLE) { self & (Self::ENABLE | Self::TRIGGER) } else { Self::empty() }
    }

    /// Returns how many bytes make a received-data interrupt (one without FIFOs, where the trigger is zero).
    pub fn trigger_bytes(self) -> usize {
        [1, 4, 8, 14][usize::from(self.bits() >> 6)]
    }
}

impl ModemStatus {
    /// The change bits of a step from these lines to others.
    pub fn changes_to(self, after: Self) -> u8 {
        let changed = (self ^ after).bits() >> 4 & 0b1011;
        let ring_ended = (self - after).contains(Self::RI);
        changed | if ring_ended { Self::RI_ENDED.bits() } else { 0 }
    }
}
