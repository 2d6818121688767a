// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power button on the bus.

use handover::Full;
use handover::state::{self, DeviceKind};

use super::PowerButton;
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::{StateError, piece};
use crate::platform::layout::port;

const CLAIMS: &[Claim] = &[Claim::Ports { first: port::POWER_BUTTON, count: 1, widths: Widths::Byte }];

impl Device for PowerButton {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::PowerButton)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, _: At, _: &mut Context<'_>) -> u64 {
        Self::read(self).into()
    }

    fn write(&mut self, _: At, value: u64, context: &mut Context<'_>) {
        Self::write(self, value as u8, context.outputs);
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    /// An image that does not know the button can go on with a guest that has seen each press.
    fn is_dispensable(&self) -> bool {
        !self.is_pressed()
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::PowerButton>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let state = state::PowerButton { pressed: u32::from(self.is_pressed).into(), zero: 0.into() };
        piece::save(&state, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::PowerButton = piece::read("power_button", from)?;
        self.is_pressed = match from.pressed.get() {
            0 => false,
            1 => true,
            _ => return Err(StateError { field: "power_button.pressed", reason: "it is neither 0 nor 1" }),
        };
        Ok(())
    }

    /// The image before knew no such button: it was not pressed.
    fn restore_nothing(&mut self) -> bool {
        *self = Self::new();
        true
    }
}
