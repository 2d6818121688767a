// SPDX-License-Identifier: MIT OR Apache-2.0
//! COM1: a UART, its ports, its line to the I/O APIC, and the guest's console behind it.

use handover::Full;
use handover::state::{self, DeviceKind, serial_flag};

use super::StateError;
use super::device::{At, Claim, Context, Device, Tag, Widths};
use super::outputs::Outputs;
use super::piece;
use super::serial::{FIFO_BYTES, Serial, SerialState};
use crate::platform::layout::{COM1_GSI, port};

const CLAIMS: &[Claim] = &[Claim::Ports { first: port::COM1, count: 8, widths: Widths::Any }];
/// The register that received bytes are read from.
const RECEIVE_BUFFER: u8 = 0;

// The hand-over has room for all that the UART holds.
const _: () = assert!(FIFO_BYTES == state::FIFO_BYTES);

/// COM1.
#[derive(Debug, Default)]
pub struct Com1 {
    uart: Serial,
    /// The level of its line that the I/O APIC was last given; unknown after a restore.
    line: Option<bool>,
}

impl Com1 {
    /// COM1 after power-on.
    pub const fn new() -> Self {
        Self { uart: Serial::new(), line: None }
    }

    /// Takes input that the operator has typed, as much as there is room for.
    pub fn take_input(&mut self, context: &mut Context<'_>) {
        while self.uart.room() > 0 {
            let Some(byte) = context.backend.console_input() else { break };
            // There is room: it cannot be full.
            let _ = self.uart.receive(byte);
        }
        self.update_line(context.outputs);
    }

    #[inline]
    fn update_line(&mut self, outputs: &mut Outputs) {
        let level = self.uart.interrupt_line();
        if self.line != Some(level) {
            self.line = Some(level);
            outputs.set_line(COM1_GSI, level);
        }
    }
}

impl Device for Com1 {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::Com1)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    /// Registers are bytes; a wider access reaches only the first.
    #[inline]
    fn read(&mut self, at: At, context: &mut Context<'_>) -> u64 {
        let register = at.offset as u8;
        let value = self.uart.read(register);
        self.update_line(context.outputs);
        if register == RECEIVE_BUFFER {
            // The line falls with the last byte read, and rises with the next one: to an edge-triggered pin that is
            // news.
            self.take_input(context);
        }
        value.into()
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        self.uart.write(at.offset as u8, value as u8, &mut |byte| context.backend.console(byte));
        self.update_line(context.outputs);
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::Serial>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        piece::save(&saved(&self.uart.state()), into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        *self = Self { uart: restored(&piece::read("serial", from)?)?, line: None };
        Ok(())
    }
}

fn saved(from: &SerialState) -> state::Serial {
    let mut received = [0; FIFO_BYTES];
    received.iter_mut().zip(&from.received).for_each(|(place, byte)| *place = *byte);
    let overrun = if from.overrun { serial_flag::OVERRUN } else { 0 };
    let empty = if from.transmit_empty_pending { serial_flag::TRANSMIT_EMPTY } else { 0 };
    state::Serial {
        received,
        received_count: from.received.len() as u8,
        interrupt_enable: from.interrupt_enable,
        fifo_control: from.fifo_control,
        line_control: from.line_control,
        modem_control: from.modem_control,
        modem_changes: from.modem_changes,
        scratch: from.scratch,
        flags: overrun | empty,
        divisor: from.divisor.into(),
        zero: [0; 6],
    }
}

fn restored(from: &state::Serial) -> Result<Serial, StateError> {
    let received = from.received.get(..usize::from(from.received_count));
    let received = received.ok_or(StateError { field: "serial.received", reason: "more bytes than the FIFO holds" })?;
    if from.flags & !serial_flag::ALL != 0 {
        return Err(StateError { field: "serial.flags", reason: "a flag is unknown" });
    }
    Serial::from_state(SerialState {
        received: received.iter().copied().collect(),
        divisor: from.divisor.get(),
        interrupt_enable: from.interrupt_enable,
        fifo_control: from.fifo_control,
        line_control: from.line_control,
        modem_control: from.modem_control,
        modem_changes: from.modem_changes,
        scratch: from.scratch,
        overrun: from.flags & serial_flag::OVERRUN != 0,
        transmit_empty_pending: from.flags & serial_flag::TRANSMIT_EMPTY != 0,
    })
}
