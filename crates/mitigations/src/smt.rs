// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choice of the threads of a core that run guests. Two threads share the core's caches, predictors and ports: a guest
//! on one can measure the other, and no flush at a switch helps.

use core::str::FromStr;

use crate::table::UnknownValue;

/// `smt`: which threads of a core run guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smt {
    /// One, unless mitigations are off.
    #[default]
    Auto,
    /// All.
    On,
    /// One.
    Off,
}

impl FromStr for Smt {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        match value {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(UnknownValue),
        }
    }
}

impl Smt {
    /// Returns whether all threads of a core run guests.
    pub const fn uses_all_threads(self, are_mitigations_on: bool) -> bool {
        match self {
            Self::Auto => !are_mitigations_on,
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// Low bits of an APIC identifier that name a thread of a core: CPUID leaf 0Bh subleaf 0 where there is one
/// (`extended_topology`: EAX and ECX), else the threads per core less one that leaf 8000_001Eh names in EBX bits 8–15.
pub const fn thread_bits(extended_topology: Option<(u32, u32)>, threads_less_one: u32) -> u32 {
    const LEVEL_THREAD: u32 = 1;
    match extended_topology {
        Some((shift, level)) if level >> 8 & 0xff == LEVEL_THREAD => shift & 0x1f,
        _ => u32::BITS - (threads_less_one & 0xff).leading_zeros(),
    }
}

/// Returns whether the CPU `index` is the first of its core in this list of APIC identifiers.
pub fn is_first_of_its_core(apic_ids: &[u32], index: usize, thread_bits: u32) -> bool {
    let core = |apic_id: &u32| apic_id.checked_shr(thread_bits).unwrap_or(0);
    match apic_ids.get(index) {
        Some(own) => !apic_ids.iter().take(index).any(|other| core(other) == core(own)),
        None => false,
    }
}
