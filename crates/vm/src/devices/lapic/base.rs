// SPDX-License-Identifier: MIT OR Apache-2.0
//! IA32_APIC_BASE: where the registers are and which mode the APIC is in (Intel SDM vol. 3, sections 11.4.4 and 11.12.5).
//!
//! ```text
//! disabled ⇄ xAPIC → x2APIC
//!     ↑─────────────────┘       everything else is #GP
//! ```

use super::{Action, Lapic};
use crate::addr::Gpa;
use crate::devices::GeneralProtection;
use crate::layout::LOCAL_APIC;

/// This is the bootstrap processor (read only, as AMD has it).
pub const BOOTSTRAP: u64 = 1 << 8;
/// x2APIC mode.
pub const EXTENDED: u64 = 1 << 10;
/// The APIC is there at all.
pub const ENABLE: u64 = 1 << 11;
/// The register page's address: as wide as addresses can be.
const ADDRESS_MASK: u64 = 0x000f_ffff_ffff_f000;

/// IA32_APIC_BASE after power-up.
pub const fn after_power_up(is_bootstrap: bool) -> u64 {
    LOCAL_APIC.0 | ENABLE | if is_bootstrap { BOOTSTRAP } else { 0 }
}

/// The mode an APIC is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As if the processor had none.
    Disabled,
    /// Registers in memory.
    XApic,
    /// Registers are MSRs.
    X2Apic,
}

impl Mode {
    /// The mode that a value of IA32_APIC_BASE names.
    ///
    /// # Errors
    /// #GP if a reserved bit is set, or x2APIC mode without the enable bit.
    pub const fn of(apic_base: u64) -> Result<Self, GeneralProtection> {
        if apic_base & !(ADDRESS_MASK | BOOTSTRAP | EXTENDED | ENABLE) != 0 {
            return Err(GeneralProtection);
        }
        match (apic_base & ENABLE != 0, apic_base & EXTENDED != 0) {
            (false, false) => Ok(Self::Disabled),
            (true, false) => Ok(Self::XApic),
            (true, true) => Ok(Self::X2Apic),
            (false, true) => Err(GeneralProtection),
        }
    }

    /// Whether the architecture has a way from this mode to `next`.
    const fn may_become(self, next: Self) -> bool {
        !matches!((self, next), (Self::Disabled, Self::X2Apic) | (Self::X2Apic, Self::XApic))
    }
}

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

    /// Where the register page is; there only in [`Mode::XApic`].
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
            Mode::X2Apic => self.state.forget_xapic_addressing(),
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
