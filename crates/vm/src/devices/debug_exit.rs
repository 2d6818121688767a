// SPDX-License-Identifier: MIT OR Apache-2.0
//! A debug-exit port for test guests.
//!
//! A guest of the test suite reports its result by writing a number to the port, and is stopped with it. The convention
//! is that of QEMU's `isa-debug-exit`, so that the same guest also runs directly in QEMU: the status that an observer
//! sees is `(number << 1) | 1`, never zero. The raw number is kept, too: nothing is lost of it.

mod on_bus;

use super::StateError;
use crate::addr::AccessSize;

/// The number a guest has stopped with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugExitCode(pub u32);

impl DebugExitCode {
    /// The process status by which QEMU's `isa-debug-exit` would show this number; an operating system keeps its low
    /// eight bits.
    pub const fn status(self) -> u32 {
        (self.0 << 1) | 1
    }
}

/// Everything about the device that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugExitState {
    /// The last number written.
    pub last_code: Option<DebugExitCode>,
}

/// The device behind the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugExit {
    state: DebugExitState,
}

impl Default for DebugExit {
    fn default() -> Self {
        Self::new()
    }
}

impl DebugExit {
    /// A port that the guest has not written to.
    pub const fn new() -> Self {
        Self { state: DebugExitState { last_code: None } }
    }

    /// Reads as zero.
    pub const fn read(&self) -> u32 {
        0
    }

    /// The guest wants to be stopped with `value`, of which `size` bytes were written at `offset` from the port. The
    /// register is at offset 0; a write beside it is ignored.
    pub fn write(&mut self, offset: u8, size: AccessSize, value: u32) -> Option<DebugExitCode> {
        if offset != 0 {
            return None;
        }
        let code = DebugExitCode((u64::from(value) & size.mask()) as u32);
        self.state.last_code = Some(code);
        Some(code)
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> DebugExitState {
        self.state.clone()
    }

    /// The device in a saved state.
    ///
    /// # Errors
    /// None today: every value of [`DebugExitState`] is a possible state.
    pub fn from_state(state: DebugExitState) -> Result<Self, StateError> {
        Ok(Self { state })
    }
}

#[cfg(test)]
mod tests;
