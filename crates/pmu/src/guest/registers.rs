// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a guest's counters, whichever vendor's they are: others answer for the rest.

use super::numbering::{AMD_GENERAL, INTEL_FIXED, INTEL_GENERAL};
use crate::amd::LEGACY_COUNTERS;
use crate::amd::number as amd;
use crate::intel::number as intel;

/// DEBUGCTL: what an overflow does is all that there is of it.
const DEBUG_CONTROL: u32 = 0x1d9;

/// Returns true if the register with this number belongs to the performance counters of Intel or of AMD. A guest has it
/// only if it has that vendor's counters: [`super::VirtualPmu::read`] refuses the others.
#[inline]
pub const fn is_register(number: u32) -> bool {
    const LAST_COUNTER: u32 = intel::COUNTER + INTEL_GENERAL as u32 - 1;
    const LAST_SELECT: u32 = intel::SELECT + INTEL_GENERAL as u32 - 1;
    const LAST_FIXED: u32 = intel::FIXED_COUNTER + INTEL_FIXED as u32 - 1;
    const LAST_FULL_WIDTH: u32 = intel::FULL_WIDTH_COUNTER + INTEL_GENERAL as u32 - 1;
    const LAST_LEGACY_SELECT: u32 = amd::LEGACY_SELECT + LEGACY_COUNTERS as u32 - 1;
    const LAST_LEGACY_COUNTER: u32 = amd::LEGACY_COUNTER + LEGACY_COUNTERS as u32 - 1;
    const LAST_EXTENDED: u32 = amd::SELECT + 2 * AMD_GENERAL as u32 - 1;
    matches!(
        number,
        intel::COUNTER..=LAST_COUNTER
            | intel::SELECT..=LAST_SELECT
            | intel::FIXED_COUNTER..=LAST_FIXED
            | intel::CAPABILITIES
            | intel::FIXED_CONTROL..=intel::GLOBAL_CLEAR
            | intel::FULL_WIDTH_COUNTER..=LAST_FULL_WIDTH
            | DEBUG_CONTROL
            | amd::LEGACY_SELECT..=LAST_LEGACY_SELECT
            | amd::LEGACY_COUNTER..=LAST_LEGACY_COUNTER
            | amd::SELECT..=LAST_EXTENDED
            | amd::GLOBAL_STATUS..=amd::GLOBAL_CLEAR
    )
}

#[cfg(test)]
#[path = "registers_tests.rs"]
mod tests;
