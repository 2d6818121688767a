// SPDX-License-Identifier: MIT OR Apache-2.0
//! The local APIC of one vCPU, in xAPIC and x2APIC mode (Intel SDM vol. 3, chapter 11; AMD APM vol. 2,
//! chapter 16).
//!
//! An interrupt's life: [`Lapic::accept`] takes a message and *requests* its vector; [`Lapic::pending`] names the
//! highest vector requested, if it may interrupt what the CPU does; [`Lapic::acknowledge`] puts it *in service*
//! as the CPU enters the handler; [`Lapic::end_of_interrupt`] ends it. Both sets are 256 bits, their highest
//! members are cached, and so each of the four is a few instructions: this is the busiest device of the machine.
//! Nothing allocates, and nothing loops over more than four words.
//!
//! | module | contents |
//! |---|---|
//! | `mmio`, `msr`, `access` | registers in memory (xAPIC), as MSRs (x2APIC), and what they do |
//! | `base` | IA32_APIC_BASE: the mode and its transitions |
//! | `command` | the interrupt command register: sending to others |
//! | `destination` | whether a message is for this APIC |
//! | `interrupts` | from acceptance to end, priorities, errors |
//! | `local` | the local vector table |
//! | `timer` | one-shot, periodic, TSC deadline |
//! | `vectors` | a set of 256 vectors |
//!
//! The timer counts ticks of the guest's TSC, one for one, before its divider: the frequency that a guest is shown for
//! the APIC's clock is the TSC's.

mod access;
mod action;
mod addressing;
mod base;
mod command;
mod destination;
mod interrupts;
mod local;
mod local_vector;
mod mmio;
mod mode;
mod msr;
mod registers;
mod state;
mod timer;
mod timer_mode;
mod vectors;

pub use action::{Acceptance, Action};
pub use addressing::Addressing;
pub use mode::Mode;
pub use state::LapicState;
pub use vectors::VectorSet;

use super::StateError;

/// IA32_APIC_BASE.
pub const MSR_APIC_BASE: u32 = 0x1b;
/// IA32_TSC_DEADLINE.
pub const MSR_TSC_DEADLINE: u32 = 0x6e0;
/// The first x2APIC register; its number in memory (offset / 16) is added.
pub const MSR_X2APIC_FIRST: u32 = 0x800;
/// The last x2APIC register.
pub const MSR_X2APIC_LAST: u32 = 0x8ff;

/// The local APIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lapic {
    state: LapicState,
    /// The highest vector in `state.requested`; 0 for none (vectors below 16 are never requested).
    highest_requested: u8,
    /// The highest vector in `state.in_service`; 0 for none.
    highest_in_service: u8,
}

impl Lapic {
    /// The local APIC after power-up: in xAPIC mode, disabled by software. `apic_id` is the 32-bit identifier, of which
    /// xAPIC mode shows the low eight bits; `is_bootstrap` marks the CPU that firmware would have started.
    pub const fn new(apic_id: u32, is_bootstrap: bool) -> Self {
        let state = LapicState::after_reset(apic_id, mode::after_power_up(is_bootstrap));
        Self { state, highest_requested: 0, highest_in_service: 0 }
    }

    /// The identifier.
    pub const fn id(&self) -> u32 {
        self.state.id
    }

    /// INIT: every register as after power-up, but for the identifier and IA32_APIC_BASE (so x2APIC mode stays).
    pub fn reset_to_init(&mut self) {
        self.state = LapicState::after_reset(self.state.id, self.state.apic_base);
        self.highest_requested = 0;
        self.highest_in_service = 0;
    }

    /// Returns the state that the next image needs to go on.
    pub fn state(&self) -> LapicState {
        self.state.clone()
    }

    /// The same without a copy.
    pub(crate) const fn borrow_state(&self) -> &LapicState {
        &self.state
    }

    /// The local APIC in a saved state.
    ///
    /// # Errors
    /// [`StateError`] if no local APIC can be in it.
    pub fn from_state(state: LapicState) -> Result<Self, StateError> {
        state.validate()?;
        let highest_requested = state.requested.highest().unwrap_or(0);
        let highest_in_service = state.in_service.highest().unwrap_or(0);
        Ok(Self { state, highest_requested, highest_in_service })
    }
}

#[cfg(test)]
mod tests;
