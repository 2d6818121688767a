// SPDX-License-Identifier: MIT OR Apache-2.0
//! The debug-exit port as a device on the bus.

use handover::Full;
use handover::state::{self, DeviceKind, small_flag};

use super::{DebugExit, DebugExitCode, DebugExitState};
use crate::devices::device::{At, Claim, Context, Device, Tag, Widths};
use crate::devices::outputs::Request;
use crate::devices::{StateError, piece};
use crate::platform::layout::port;

const CLAIMS: &[Claim] = &[Claim::Ports { first: port::DEBUG_EXIT, count: 1, widths: Widths::Any }];

impl Device for DebugExit {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::DebugExit)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    fn read(&mut self, _: At, _: &mut Context<'_>) -> u64 {
        Self::read(self).into()
    }

    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        if let Some(code) = Self::write(self, at.offset as u8, at.size, value as u32) {
            context.outputs.request(Request::DebugExit(code));
        }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::DebugExit>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let last_code = self.state().last_code;
        let flags = if last_code.is_some() { small_flag::DEBUG_EXIT_WRITTEN } else { 0 };
        let code = last_code.map_or(0, |code| code.0);
        piece::save(&state::DebugExit { code: code.into(), flags: flags.into() }, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::DebugExit = piece::read("debug_exit", from)?;
        let last_code = match from.flags.get() {
            0 => None,
            small_flag::DEBUG_EXIT_WRITTEN => Some(DebugExitCode(from.code.get())),
            _ => return Err(StateError { field: "debug_exit.flags", reason: "a flag is unknown" }),
        };
        *self = Self::from_state(DebugExitState { last_code })?;
        Ok(())
    }
}
