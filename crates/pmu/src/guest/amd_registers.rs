// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of an AMD guest.

use super::numbering::{AMD_GENERAL, Register};
use crate::amd::LEGACY_COUNTERS;
use crate::amd::number::*;

#[inline(always)]
pub(super) fn register(number: u32) -> Option<Register> {
    const LAST_SELECT: u32 = LEGACY_SELECT + LEGACY_COUNTERS as u32 - 1;
    const LAST_COUNTER: u32 = LEGACY_COUNTER + LEGACY_COUNTERS as u32 - 1;
    const LAST: u32 = SELECT + 2 * AMD_GENERAL as u32 - 1;
    Some(match number {
        SELECT..=LAST => {
            let at = (number - SELECT) as usize;
            if at.is_multiple_of(2) { Register::Select(at / 2) } else { Register::Counter(at / 2) }
        }
        LEGACY_SELECT..=LAST_SELECT => Register::Select((number - LEGACY_SELECT) as usize),
        LEGACY_COUNTER..=LAST_COUNTER => Register::Counter((number - LEGACY_COUNTER) as usize),
        GLOBAL_STATUS => Register::GlobalStatus,
        GLOBAL_CONTROL => Register::GlobalControl,
        GLOBAL_CLEAR => Register::GlobalClear,
        _ => return None,
    })
}
