// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks of known rate.

use crate::arch::{address, port};

/// The address at which the HPET's page is mapped.
pub const HPET_MAPPED_AT: u64 = address::DEVICES + 0x20_0000;

/// 3.579545 MHz (ACPI 6.5, section 4.8.3.3).
const PM_TIMER_PERIOD_FEMTOSECONDS: u64 = 279_365_114;

/// A clock of known rate to measure the others against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// HPET, mapped at [`HPET_MAPPED_AT`]: fine-grained, a millisecond is enough.
    Hpet,
    /// The ACPI PM timer at this port, 24 bits wide.
    PmTimer(u16),
}

/// No clock of known rate is there, or it stands still.
#[derive(Clone, Copy, Debug)]
pub struct NoReference;

impl Reference {
    pub fn start(self) -> Result<(), NoReference> {
        let Self::Hpet = self else { return Ok(()) };
        // SAFETY: the HPET's page is mapped uncached at this address (the caller chose it as reference).
        unsafe {
            let configuration = (HPET_MAPPED_AT + 0x10) as *mut u32;
            core::ptr::write_volatile(configuration, core::ptr::read_volatile(configuration) | 1);
        }
        // IA-PC HPET 1.0a, section 2.3.4: at most 100 ns, never 0.
        if (1..=100_000_000).contains(&self.period_femtoseconds()) { Ok(()) } else { Err(NoReference) }
    }

    pub fn as_source(self) -> &'static str {
        match self {
            Self::Hpet => "measured against the HPET",
            Self::PmTimer(_) => "measured against the ACPI PM timer",
        }
    }

    pub fn period_femtoseconds(self) -> u64 {
        match self {
            // SAFETY: as in `start`; the period is constant.
            Self::Hpet => unsafe { u64::from(core::ptr::read_volatile((HPET_MAPPED_AT + 4) as *const u32)) },
            Self::PmTimer(_) => PM_TIMER_PERIOD_FEMTOSECONDS,
        }
    }

    /// The low half of the HPET's counter is enough for half a minute; the PM timer has 24 bits.
    pub fn mask(self) -> u64 {
        match self {
            Self::Hpet => u64::from(u32::MAX),
            Self::PmTimer(_) => 0xff_ffff,
        }
    }

    /// Returns how long its counter distinguishes, with half in reserve.
    pub fn unambiguous_ns(self) -> u64 {
        (u128::from(self.mask()) * u128::from(self.period_femtoseconds()) / 2_000_000) as u64
    }

    pub fn now(self) -> u64 {
        match self {
            // SAFETY: mapped as above; reading the counter changes nothing.
            Self::Hpet => unsafe { u64::from(core::ptr::read_volatile((HPET_MAPPED_AT + 0xf0) as *const u32)) },
            // SAFETY: the FADT names this port as the PM timer; reading it changes nothing.
            Self::PmTimer(at) => unsafe { u64::from(port::read_u32(at)) },
        }
    }
}
