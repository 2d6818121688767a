// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hot-plug controller on the bus.

use handover::Full;
use handover::state::{self, DeviceKind};

use super::{HotPlug, HotPlugState, Register};
use crate::addr::AccessSize;
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::outputs::Request;
use crate::devices::{StateError, piece};
use crate::platform::layout::port;

const CLAIMS: &[Claim] =
    &[Claim::Ports { first: port::HOT_PLUG, count: port::HOT_PLUG_PORTS as u16, widths: Widths::Any }];

/// The register that an access is to. Accesses of other widths, or beside a register's start, are to none.
fn register(at: At) -> Option<Register> {
    match (at.offset, at.size) {
        (0, AccessSize::Dword) => Some(Register::Checks),
        (4, AccessSize::Dword) => Some(Register::Requests),
        (8, AccessSize::Dword) => Some(Register::Eject),
        _ => None,
    }
}

impl Device for HotPlug {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::HotPlug)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, at: At, _: &mut Context<'_>) -> u64 {
        register(at).map_or(at.size.mask(), |register| Self::read(self, register).into())
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        let Some(register) = register(at) else { return };
        if Self::write(self, register, value as u32, context.outputs) {
            context.outputs.request(Request::Ejected);
        }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    /// An image that does not know the controller can go on with a guest for which nothing waits.
    fn is_dispensable(&self) -> bool {
        let HotPlugState { checks, asked, ejected, .. } = self.state();
        checks | asked | ejected == 0
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::HotPlug>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let HotPlugState { checks, requests, asked, ejected } = self.state();
        let state = state::HotPlug {
            checks: checks.into(),
            requests: requests.into(),
            asked: asked.into(),
            ejected: ejected.into(),
        };
        piece::save(&state, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::HotPlug = piece::read("hot_plug", from)?;
        *self = Self::from_state(HotPlugState {
            checks: from.checks.get(),
            requests: from.requests.get(),
            asked: from.asked.get(),
            ejected: from.ejected.get(),
        })?;
        Ok(())
    }

    /// The image before knew no such controller: nothing waits.
    fn restore_nothing(&mut self) -> bool {
        *self = Self::new();
        true
    }
}
