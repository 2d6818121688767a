// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbering of a guest's counters: their number, and each one's slot, bit and registers.

use crate::vendor::Vendor;
use crate::{Counter, SLOTS, Width};

/// General counters of an Intel guest.
pub const INTEL_GENERAL: usize = 8;
/// Its counters of fixed purpose; their slots come behind the general ones.
pub const INTEL_FIXED: usize = 3;
/// Counters of an AMD guest.
pub const AMD_GENERAL: usize = 6;

/// A register of the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    Select(usize),
    /// As the older registers of Intel's are written: 32 bits, sign-extended.
    ShortCounter(usize),
    Counter(usize),
    FixedControl,
    GlobalControl,
    GlobalStatus,
    GlobalClear,
    Capabilities,
    DebugControl,
}

/// The value's bits that a counter has.
pub(super) const fn cut(value: u64) -> u64 {
    value & Width::USUAL.mask()
}

pub(super) const fn general(vendor: Vendor) -> usize {
    match vendor {
        Vendor::Intel => INTEL_GENERAL,
        Vendor::Amd => AMD_GENERAL,
    }
}

/// A slot's bit in the global registers.
pub(super) const fn global_bit(slot: usize) -> u32 {
    (if slot < INTEL_GENERAL { slot } else { slot - INTEL_GENERAL + Counter::FIRST_FIXED as usize }) as u32
}

/// The slot of one of a guest's counters.
pub(crate) fn slot_of(counter: Counter) -> Option<usize> {
    match counter.fixed_number() {
        Some(fixed) => Some(INTEL_GENERAL + usize::from(fixed)).filter(|&slot| slot < SLOTS),
        None => Some(usize::from(counter.index())).filter(|&slot| slot < INTEL_GENERAL),
    }
}

/// Slots by their bits in the global registers.
pub(super) const fn slots_of_global(bits: u64) -> u16 {
    let general = bits & ((1 << INTEL_GENERAL) - 1);
    let fixed = bits >> Counter::FIRST_FIXED & ((1 << INTEL_FIXED) - 1);
    (general | fixed << INTEL_GENERAL) as u16
}
