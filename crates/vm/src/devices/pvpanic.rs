// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pvpanic device: a guest reports that it has panicked.
//!
//! One byte-wide port (QEMU's `docs/specs/pvpanic`). A guest reads it to learn which events the host understands and
//! writes the event that has happened, from its panic handler, with nothing else of it working any more. So the device
//! needs no set-up and records the events that were written.

mod on_bus;

use super::StateError;

/// Bit 0: the guest has panicked.
const PANICKED: u8 = 1 << 0;
/// Bit 1: the guest has panicked and starts its crash kernel.
const CRASH_LOADED: u8 = 1 << 1;

/// An event that a guest reports of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicEvent {
    /// It has panicked.
    Panicked,
    /// It has panicked and goes on in a crash kernel (kdump).
    CrashLoaded,
}

/// Everything about the device that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PvpanicState {
    /// The last event reported.
    pub last_event: Option<PanicEvent>,
}

/// The device behind the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pvpanic {
    state: PvpanicState,
}

impl Default for Pvpanic {
    fn default() -> Self {
        Self::new()
    }
}

impl Pvpanic {
    /// The device of a guest that is well.
    pub const fn new() -> Self {
        Self { state: PvpanicState { last_event: None } }
    }

    /// The events that this host understands.
    pub const fn read(&self) -> u8 {
        PANICKED | CRASH_LOADED
    }

    /// The guest reports an event; bits that mean nothing here are ignored. A report of both is a panic.
    pub fn write(&mut self, value: u8) -> Option<PanicEvent> {
        let event = match value {
            _ if value & PANICKED != 0 => PanicEvent::Panicked,
            _ if value & CRASH_LOADED != 0 => PanicEvent::CrashLoaded,
            _ => return None,
        };
        self.state.last_event = Some(event);
        Some(event)
    }

    /// The last event reported since the guest's start.
    pub const fn last_event(&self) -> Option<PanicEvent> {
        self.state.last_event
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> PvpanicState {
        self.state.clone()
    }

    /// The device in a saved state.
    ///
    /// # Errors
    /// None today: every value of [`PvpanicState`] is a possible state.
    pub fn from_state(state: PvpanicState) -> Result<Self, StateError> {
        Ok(Self { state })
    }
}

#[cfg(test)]
mod tests;
