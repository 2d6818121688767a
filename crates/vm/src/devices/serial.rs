// SPDX-License-Identifier: MIT OR Apache-2.0
//! A 16550A UART with both FIFOs (National Semiconductor PC16550D data sheet; section numbers below are its).
//!
//! The wire behind it has no speed: a byte written is handed on at once, so the transmitter is always empty and the
//! divisor and the line format are stored but mean nothing (every byte is carried with all its eight bits). Time does
//! not pass between two bytes received either: the character time-out, which informs a driver of bytes below the FIFO's
//! trigger level, has always run out already.
//!
//! A guest may do its worst: every register has a fixed set of bits, nothing allocates, and a byte that finds no room
//! is reported to both sides (overrun in the line status register; [`Full`] to the caller).

use bitflags::bitflags;

mod registers;
mod state;

use registers::{FifoControl, InterruptEnable, LineStatus, ModemControl, ModemStatus, interrupt_id, offset};
pub use state::{FIFO_BYTES, SerialState};

/// A byte was received that finds no room: it, or the one before it, is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The UART.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serial {
    state: SerialState,
}

impl Default for Serial {
    fn default() -> Self {
        Self::new()
    }
}

impl Serial {
    /// A UART after a master reset (section 8.0), with a terminal at the other end.
    pub const fn new() -> Self {
        Self { state: SerialState::RESET }
    }

    /// Reads the register at `offset` (0–7) from the first port; other offsets read as all ones.
    pub fn read(&mut self, offset: u8) -> u8 {
        match offset {
            offset::DATA if self.divisor_is_open() => self.state.divisor.to_le_bytes()[0],
            offset::INTERRUPT_ENABLE if self.divisor_is_open() => self.state.divisor.to_le_bytes()[1],
            offset::DATA => self.state.received.pop_at(0).unwrap_or(0),
            offset::INTERRUPT_ENABLE => self.state.interrupt_enable,
            offset::INTERRUPT_ID => self.read_interrupt_id(),
            offset::LINE_CONTROL => self.state.line_control,
            offset::MODEM_CONTROL => self.state.modem_control,
            offset::LINE_STATUS => self.read_line_status(),
            offset::MODEM_STATUS => self.read_modem_status(),
            offset::SCRATCH => self.state.scratch,
            _ => 0xff,
        }
    }

    /// Writes the register at `offset` (0–7); bytes to send go to `transmit`.
    pub fn write(&mut self, offset: u8, value: u8, transmit: &mut impl FnMut(u8)) {
        let [low, high] = self.state.divisor.to_le_bytes();
        match offset {
            offset::DATA if self.divisor_is_open() => self.state.divisor = u16::from_le_bytes([value, high]),
            offset::INTERRUPT_ENABLE if self.divisor_is_open() => self.state.divisor = u16::from_le_bytes([low, value]),
            offset::DATA => self.transmit(value, transmit),
            offset::INTERRUPT_ENABLE => self.write_interrupt_enable(value),
            offset::FIFO_CONTROL => self.write_fifo_control(value),
            offset::LINE_CONTROL => self.state.line_control = value,
            offset::MODEM_CONTROL => self.write_modem_control(value),
            offset::SCRATCH => self.state.scratch = value,
            _ => {}
        }
    }

    /// A byte arrives from outside.
    ///
    /// # Errors
    /// [`Full`] if there was no [`room`](Self::room); the guest sees an overrun.
    pub fn receive(&mut self, byte: u8) -> Result<(), Full> {
        if self.room() > 0 {
            self.state.received.push(byte);
            return Ok(());
        }
        self.state.overrun = true;
        // Without FIFOs the new byte replaces the old one; with them it is lost (section 8.6.3, bit 1).
        if !self.fifos_are_on() {
            self.state.received.clear();
            self.state.received.push(byte);
        }
        Err(Full)
    }

    /// Returns how many more bytes can be received.
    pub fn room(&self) -> usize {
        let capacity = if self.fifos_are_on() { FIFO_BYTES } else { 1 };
        capacity.saturating_sub(self.state.received.len())
    }

    /// Returns whether the UART asserts its interrupt line. On a PC the pin OUT2 gates it, and loopback holds that pin
    /// inactive.
    #[inline]
    pub fn interrupt_line(&self) -> bool {
        let control = self.modem_control();
        control.contains(ModemControl::OUT2) && !control.contains(ModemControl::LOOPBACK) && self.cause().is_some()
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> SerialState {
        self.state.clone()
    }

    /// The UART in a saved state.
    ///
    /// # Errors
    /// [`StateError`](super::StateError) if no UART can be in it.
    pub fn from_state(state: SerialState) -> Result<Self, super::StateError> {
        state.validate()?;
        Ok(Self { state })
    }

    fn divisor_is_open(&self) -> bool {
        self.state.line_control & registers::DIVISOR_LATCH_ACCESS != 0
    }

    fn fifos_are_on(&self) -> bool {
        self.fifo_control().contains(FifoControl::ENABLE)
    }

    fn fifo_control(&self) -> FifoControl {
        FifoControl::from_bits_retain(self.state.fifo_control)
    }

    fn modem_control(&self) -> ModemControl {
        ModemControl::from_bits_retain(self.state.modem_control)
    }

    /// The pending interrupt of the highest priority as the identification register names it (section 8.6.6, table V).
    fn cause(&self) -> Option<u8> {
        let enabled = InterruptEnable::from_bits_retain(self.state.interrupt_enable);
        if enabled.contains(InterruptEnable::LINE_STATUS) && self.state.overrun {
            return Some(interrupt_id::LINE_STATUS);
        }
        if enabled.contains(InterruptEnable::RECEIVED) && !self.state.received.is_empty() {
            let reaches_trigger = self.state.received.len() >= self.fifo_control().trigger_bytes();
            return Some(if reaches_trigger { interrupt_id::RECEIVED } else { interrupt_id::TIME_OUT });
        }
        if enabled.contains(InterruptEnable::TRANSMIT_EMPTY) && self.state.transmit_empty_pending {
            return Some(interrupt_id::TRANSMIT_EMPTY);
        }
        let modem_changed = enabled.contains(InterruptEnable::MODEM_STATUS) && self.state.modem_changes != 0;
        modem_changed.then_some(interrupt_id::MODEM_STATUS)
    }

    /// Reading a transmitter-empty cause takes it back; the others last until their own register is read.
    fn read_interrupt_id(&mut self) -> u8 {
        let cause = self.cause();
        if cause == Some(interrupt_id::TRANSMIT_EMPTY) {
            self.state.transmit_empty_pending = false;
        }
        let fifos = if self.fifos_are_on() { interrupt_id::FIFOS_ON } else { 0 };
        cause.unwrap_or(interrupt_id::NONE) | fifos
    }

    fn read_line_status(&mut self) -> u8 {
        let mut status = LineStatus::TRANSMIT_HOLDING_EMPTY | LineStatus::TRANSMITTER_EMPTY;
        status.set(LineStatus::DATA_READY, !self.state.received.is_empty());
        status.set(LineStatus::OVERRUN, core::mem::take(&mut self.state.overrun));
        status.bits()
    }

    fn read_modem_status(&mut self) -> u8 {
        self.modem_lines().bits() | core::mem::take(&mut self.state.modem_changes)
    }

    /// The modem's lines: a terminal that is always there, or our own outputs in loopback (section 8.6.7, bit 4).
    fn modem_lines(&self) -> ModemStatus {
        let control = self.modem_control();
        if !control.contains(ModemControl::LOOPBACK) {
            return ModemStatus::CTS | ModemStatus::DSR | ModemStatus::DCD;
        }
        let mut lines = ModemStatus::empty();
        lines.set(ModemStatus::CTS, control.contains(ModemControl::RTS));
        lines.set(ModemStatus::DSR, control.contains(ModemControl::DTR));
        lines.set(ModemStatus::RI, control.contains(ModemControl::OUT1));
        lines.set(ModemStatus::DCD, control.contains(ModemControl::OUT2));
        lines
    }

    /// Sends a byte: the holding register is empty again before the guest can read the line status.
    fn transmit(&mut self, byte: u8, transmit: &mut impl FnMut(u8)) {
        if self.modem_control().contains(ModemControl::LOOPBACK) {
            // An overrun in loopback is the guest's own affair and shows in its line status.
            let _ = self.receive(byte);
        } else {
            transmit(byte);
        }
        self.state.transmit_empty_pending = true;
    }

    /// Enabling the transmitter-empty interrupt while the transmitter is empty raises it (section 8.6.8).
    fn write_interrupt_enable(&mut self, value: u8) {
        let before = InterruptEnable::from_bits_retain(self.state.interrupt_enable);
        let enabled = InterruptEnable::from_bits_truncate(value);
        if (enabled - before).contains(InterruptEnable::TRANSMIT_EMPTY) {
            self.state.transmit_empty_pending = true;
        }
        self.state.interrupt_enable = enabled.bits();
    }

    /// Section 8.6.5: enabling or disabling the FIFOs empties them; the other bits count only together with the enable.
    fn write_fifo_control(&mut self, value: u8) {
        let control = FifoControl::from_bits_truncate(value);
        let switches = control.contains(FifoControl::ENABLE) != self.fifos_are_on();
        if switches || control.contains(FifoControl::ENABLE | FifoControl::CLEAR_RECEIVE) {
            self.state.received.clear();
        }
        self.state.fifo_control = control.kept().bits();
    }

    fn write_modem_control(&mut self, value: u8) {
        let before = self.modem_lines();
        self.state.modem_control = ModemControl::from_bits_truncate(value).bits();
        self.state.modem_changes |= before.changes_to(self.modem_lines());
    }
}

#[cfg(test)]
mod tests;
