// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modes of an APIC, and the values of IA32_APIC_BASE that name them.

use crate::devices::GeneralProtection;
use crate::platform::layout::LOCAL_APIC;

/// This is the bootstrap processor (read only, as AMD has it).
pub const BOOTSTRAP: u64 = 1 << 8;
/// x2APIC mode.
pub const EXTENDED: u64 = 1 << 10;
/// The APIC is there at all.
pub const ENABLE: u64 = 1 << 11;
/// The register page's address: as wide as addresses can be.
pub const ADDRESS_MASK: u64 = 0x000f_ffff_ffff_f000;

/// IA32_APIC_BASE after power-up.
pub const fn after_power_up(is_bootstrap: bool) -> u64 {
    LOCAL_APIC.0 | ENABLE | if is_bootstrap { BOOTSTRAP } else { 0 }
}

/// The mode an APIC is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As if the CPU had none.
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

    /// Returns whether the architecture has a way from this mode to `next`.
    pub(super) const fn may_become(self, next: Self) -> bool {
        !matches!((self, next), (Self::Disabled, Self::X2Apic) | (Self::X2Apic, Self::XApic))
    }
}
