// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power and reset registers as a device on the bus.

use handover::Full;
use handover::state::{self, DeviceKind};

use super::{Power, PowerRegister, PowerRequest, PowerState};
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::outputs::Request;
use crate::devices::{StateError, piece};
use crate::platform::layout::port;

/// Port [`port::RESET`] lies inside of PCI's address port, whose accesses are wider.
const CLAIMS: &[Claim] = &[
    Claim::Ports { first: port::SLEEP_CONTROL, count: 2, widths: Widths::Any },
    Claim::Ports { first: port::RESET, count: 1, widths: Widths::Byte },
];

fn register(at: At) -> PowerRegister {
    match (at.range, at.offset) {
        (0, 0) => PowerRegister::SleepControl,
        (0, _) => PowerRegister::SleepStatus,
        _ => PowerRegister::Reset,
    }
}

impl Device for Power {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::Power)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, at: At, _: &mut Context<'_>) -> u64 {
        Self::read(self, register(at)).into()
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        match Self::write(self, register(at), value as u8) {
            Some(PowerRequest::PowerOff) => context.outputs.request(Request::PowerOff),
            Some(PowerRequest::Reset) => context.outputs.request(Request::Reset),
            None => {}
        }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::Power>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let PowerState { sleep_control, reset_control } = self.state();
        piece::save(&state::Power { sleep_control, reset_control, zero: [0; 6] }, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let state::Power { sleep_control, reset_control, .. } = piece::read("power", from)?;
        *self = Self::from_state(PowerState { sleep_control, reset_control })?;
        Ok(())
    }
}
