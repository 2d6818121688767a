// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock as a device on the bus.

use handover::Full;
use handover::state::{self, DeviceKind};

use super::{Cmos, CmosState};
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::{StateError, piece};
use crate::platform::layout::port;

const CLAIMS: &[Claim] = &[Claim::Ports { first: port::CMOS, count: 2, widths: Widths::Any }];

impl Device for Cmos {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::Cmos)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, at: At, context: &mut Context<'_>) -> u64 {
        Self::read(self, at.offset as u8, context.backend.unix_seconds()).into()
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        Self::write(self, at.offset as u8, value as u8, context.backend.unix_seconds());
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::Cmos>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let from = self.state();
        let saved = state::Cmos {
            offset_seconds: from.offset_seconds.into(),
            held_time: from.held_time,
            index: from.index,
            register_a: from.register_a,
            register_b: from.register_b,
            zero: [0; 5],
            ram: from.ram,
        };
        piece::save(&saved, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::Cmos = piece::read("cmos", from)?;
        *self = Self::from_state(CmosState {
            index: from.index,
            register_a: from.register_a,
            register_b: from.register_b,
            offset_seconds: from.offset_seconds.get(),
            held_time: from.held_time,
            ram: from.ram,
        })?;
        Ok(())
    }
}
