// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pvpanic device on the bus.

use handover::Full;
use handover::state::{self, DeviceKind};

use super::{PanicEvent, Pvpanic, PvpanicState};
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::outputs::Request;
use crate::devices::{StateError, piece};
use crate::platform::layout::port;

const CLAIMS: &[Claim] = &[Claim::Ports { first: port::PVPANIC, count: 1, widths: Widths::Any }];

impl Device for Pvpanic {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::Pvpanic)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, _: At, _: &mut Context<'_>) -> u64 {
        Self::read(self).into()
    }

    fn write(&mut self, _: At, value: u64, context: &mut Context<'_>) {
        if let Some(event) = Self::write(self, value as u8) {
            context.outputs.request(Request::Panicked(event));
        }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::Pvpanic>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let last_event = match self.last_event() {
            None => 0,
            Some(PanicEvent::Panicked) => 1,
            Some(PanicEvent::CrashLoaded) => 2,
        };
        piece::save(&state::Pvpanic { last_event: last_event.into(), zero: 0.into() }, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::Pvpanic = piece::read("pvpanic", from)?;
        let last_event = match from.last_event.get() {
            0 => None,
            1 => Some(PanicEvent::Panicked),
            2 => Some(PanicEvent::CrashLoaded),
            _ => return Err(StateError { field: "pvpanic.last_event", reason: "it is unknown" }),
        };
        *self = Self::from_state(PvpanicState { last_event })?;
        Ok(())
    }
}
