// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a UART that is handed over, and its valid values.

use arrayvec::ArrayVec;

use super::registers::{FifoControl, InterruptEnable, ModemControl};
use crate::devices::StateError;

/// Bytes each FIFO holds.
pub const FIFO_BYTES: usize = 16;

/// Everything about the UART that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialState {
    /// Bytes received that the guest has not read, oldest first; at most one while the FIFOs are off.
    pub received: ArrayVec<u8, FIFO_BYTES>,
    /// The divisor latch.
    pub divisor: u16,
    /// Interrupt enable register.
    pub interrupt_enable: u8,
    /// FIFO control register: the enable and the trigger level.
    pub fifo_control: u8,
    /// Line control register.
    pub line_control: u8,
    /// Modem control register.
    pub modem_control: u8,
    /// The change bits of the modem status register, not read yet.
    pub modem_changes: u8,
    /// Scratch register.
    pub scratch: u8,
    /// A byte was lost and the guest has not read so yet.
    pub overrun: bool,
    /// The transmitter ran empty and the guest has not been notified yet.
    pub transmit_empty_pending: bool,
}

impl SerialState {
    /// After a master reset. The divisor is 115,200 baud's, as firmware leaves it.
    pub(super) const RESET: Self = Self {
        received: ArrayVec::new_const(),
        divisor: 1,
        interrupt_enable: 0,
        fifo_control: 0,
        line_control: 0,
        modem_control: 0,
        modem_changes: 0,
        scratch: 0,
        overrun: false,
        transmit_empty_pending: false,
    };

    /// Checks that a UART can be in this state.
    pub(super) fn validate(&self) -> Result<(), StateError> {
        let fifo_control = FifoControl::from_bits_retain(self.fifo_control);
        let refusals = [
            ("serial.interrupt_enable", self.interrupt_enable & !InterruptEnable::all().bits() != 0),
            ("serial.modem_control", self.modem_control & !ModemControl::all().bits() != 0),
            ("serial.modem_changes", self.modem_changes & 0xf0 != 0),
            ("serial.fifo_control", fifo_control != fifo_control.kept()),
        ];
        if let Some((field, _)) = refusals.into_iter().find(|(_, refused)| *refused) {
            return Err(StateError { field, reason: "a bit is set that always reads as zero" });
        }
        if self.received.len() > 1 && fifo_control.is_empty() {
            return Err(StateError { field: "serial.received", reason: "more than one byte without FIFOs" });
        }
        Ok(())
    }
}
