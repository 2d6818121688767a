// SPDX-License-Identifier: MIT OR Apache-2.0
//! IA32_APIC_BASE: where the registers are and which mode the APIC is in (Intel SDM vol. 3, sections 11.4.4
//! and 11.12.5).
//!
//! ```text
//! disabled ⇄ xAPIC → x2APIC
//!     ↑─────────────────┘       everything else is #GP
//! ```

use super::mode::{ADDRESS_MASK, BOOTSTRAP, ENABLE, EXTENDED, Mode};
use super::{Action, Lapic};
use crate::addr::Gpa;
use crate::devices::GeneralProtection;

impl Lapic {
    /// The mode the APIC is in.
    #[inline]
    pub const fn mode(&self) -> Mode {
        match (self.is_enabled(), self.is_x2apic()) {
            (false, _) => Mode::Disabled,
            (true, false) => Mode::XApic,
            (true, true) => Mode::X2Apic,
        }
    }

    /// IA32_APIC_BASE.
    pub const fn apic_base(&self) -> u64 {
        self.state.apic_base
    }

    /// Returns where the register page is; there only in [`Mode::XApic`].
    pub const fn register_page(&self) -> Gpa {
        Gpa(self.state.apic_base & ADDRESS_MASK)
    }

    /// Writes IA32_APIC_BASE. Disabling the APIC resets it; the bootstrap flag stays what it is.
    ///
    /// # Errors
    /// #GP for a reserved bit or a mode that cannot be reached from this one.
    pub fn set_apic_base(&mut self, value: u64) -> Result<Action, GeneralProtection> {
        let (before, next) = (self.mode(), Mode::of(value)?);
        if !before.may_become(next) {
            return Err(GeneralProtection);
        }
        self.state.apic_base = value & !BOOTSTRAP | self.state.apic_base & BOOTSTRAP;
        if before == next {
            return Ok(Action::None);
        }
        match next {
            Mode::Disabled => self.reset_to_init(),
            Mode::X2Apic => self.state.reset_xapic_addressing(),
            Mode::XApic => {}
        }
        Ok(Action::TimerChanged)
    }

    #[inline]
    pub(super) const fn is_enabled(&self) -> bool {
        self.state.apic_base & ENABLE != 0
    }

    #[inline]
    pub(super) const fn is_x2apic(&self) -> bool {
        self.state.apic_base & EXTENDED != 0
    }
}
