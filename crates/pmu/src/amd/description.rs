// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters of a CPU, and the registers by which they are reached.

use super::number::{COUNTER, LEGACY_COUNTER, LEGACY_SELECT, SELECT};
use super::unusable::Unusable;
use crate::Counter;

/// Event select and unit mask of what both vendors have.
pub const CYCLES: (u16, u8) = (0x76, 0);
/// See [`CYCLES`].
pub const INSTRUCTIONS: (u16, u8) = (0xc0, 0);
/// Cycles at the rate of P0, which is the time stamp counter's (from family 19h on).
pub const REFERENCE_CYCLES: (u16, u8) = (0x120, 1);
/// Counts only while a guest runs (EFER.SVME set).
pub const GUEST_ONLY: u64 = 1 << 40;
/// Counts only while none does.
pub const HOST_ONLY: u64 = 1 << 41;

/// Counters without the extension.
pub const LEGACY_COUNTERS: u8 = 4;
/// Counters with it.
pub const EXTENDED_COUNTERS: u8 = 6;

/// Features by CPUID: leaf 0x8000_0001 ECX bit 23, leaf 0x8000_0022.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The counters have the extension's registers.
    pub is_extended: bool,
    /// There are global registers.
    pub has_global: bool,
    /// Number of counters.
    pub counters: u8,
    /// True if [`REFERENCE_CYCLES`] are counted.
    pub counts_reference: bool,
}

impl Description {
    /// By CPUID: EAX, EBX, ECX and EDX of a leaf.
    ///
    /// # Errors
    /// [`Unusable`]: there are no such counters, so that none of their registers may be touched.
    pub fn detect(cpuid: impl Fn(u32) -> [u32; 4]) -> Result<Self, Unusable> {
        const EXTENDED: u32 = 0x8000_0001;
        const MONITORING: u32 = 0x8000_0022;
        let [_, b, c, d] = cpuid(0);
        let maker = [b, d, c].map(u32::to_le_bytes);
        if ![b"AuthenticAMD", b"HygonGenuine"].iter().any(|known| maker.as_flattened() == *known) {
            return Err(Unusable::OtherMaker);
        }
        let [signature, ..] = cpuid(1);
        let family = match signature >> 8 & 0xf {
            0xf => 0xf + (signature >> 20 & 0xff),
            family => family,
        };
        let last = cpuid(EXTENDED - 1)[0];
        let leaf = |number| if number <= last { cpuid(number) } else { [0; 4] };
        let [eax, ebx, ..] = leaf(MONITORING);
        let this = Self::from_cpuid(leaf(EXTENDED)[2], eax, ebx, family);
        if this.counters == 0 { Err(Unusable::NoCounters) } else { Ok(this) }
    }

    /// From the registers; `family` is the CPU's, with the extended one added.
    pub fn from_cpuid(extended_ecx: u32, monitoring_eax: u32, monitoring_ebx: u32, family: u32) -> Self {
        const EXTENSION: u32 = 1 << 23;
        let is_extended = extended_ecx & EXTENSION != 0;
        let has_global = is_extended && monitoring_eax & 1 != 0;
        let counters = match (is_extended, has_global) {
            (false, _) => LEGACY_COUNTERS,
            (true, false) => EXTENDED_COUNTERS,
            (true, true) => (monitoring_ebx & 0xf) as u8,
        };
        Self { is_extended, has_global, counters, counts_reference: family >= 0x19 }
    }

    /// Returns what these counters are called.
    pub const fn name(&self) -> &'static str {
        match (self.is_extended, self.has_global) {
            (false, _) => "perfctr",
            (true, false) => "perfctr-core",
            (true, true) => "perfmon-v2",
        }
    }

    /// The register that selects the event of a counter.
    pub(super) const fn select(&self, counter: Counter) -> u32 {
        let number = counter.index() as u32;
        if self.is_extended { SELECT + 2 * number } else { LEGACY_SELECT + number }
    }

    /// The counter itself.
    pub(super) const fn value(&self, counter: Counter) -> u32 {
        let number = counter.index() as u32;
        if self.is_extended { COUNTER + 2 * number } else { LEGACY_COUNTER + number }
    }
}
