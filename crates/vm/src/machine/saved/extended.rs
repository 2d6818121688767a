// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that stay in the CPU across exits, as XSAVE and FXSAVE leave them: a CPU faults when it is to
//! load an area that cannot be (Intel SDM vol. 1, sections 10.5.1 and 13.8; AMD APM vol. 2, sections 11.4.4
//! and 11.5.5).

use core::ops::Range;

use handover::state::{AreaFormat, Extended};

use crate::devices::StateError;

const FXSAVE_BYTES: usize = 512;
const XSAVE_LEAST_BYTES: usize = FXSAVE_BYTES + 64;
const MXCSR_OFFSET: usize = 24;
/// Bits that MXCSR can have; bit 17 is AMD's misaligned exception mask.
const MXCSR_DEFINED: u32 = 0x0002_ffff;
const PRESENT_OFFSET: usize = FXSAVE_BYTES;
/// The control word that FNINIT sets; with it and nothing else, x87 is in its initial configuration.
const FNINIT_CONTROL: u64 = 0x37f;

/// Checks an area before a CPU loads it. `allowed` are the components that it may hold, `bytes` those that an
/// area with all of them has.
///
/// # Errors
/// [`StateError`] if the CPU would fault, or the area is of other components than `allowed`.
pub fn check_area(extended: &Extended, area: &[u8], allowed: u64, bytes: usize) -> Result<(), StateError> {
    let refuse = |reason| Err(StateError { field: "extended.area", reason });
    let least = match AreaFormat::from_number(extended.format.get()) {
        Some(AreaFormat::Fxsave) => FXSAVE_BYTES,
        Some(AreaFormat::Xsave) => XSAVE_LEAST_BYTES.max(bytes),
        None => return Err(StateError { field: "extended.format", reason: "it is unknown" }),
    };
    if area.len() < least {
        return refuse("it is too short");
    }
    if u64_at(area, MXCSR_OFFSET) as u32 & !MXCSR_DEFINED != 0 {
        return refuse("MXCSR has a reserved bit set");
    }
    if extended.format.get() == AreaFormat::Fxsave as u32 {
        return Ok(());
    }
    if extended.components.get() != allowed {
        return Err(StateError { field: "extended.components", reason: "not those that this CPU has" });
    }
    if u64_at(area, PRESENT_OFFSET) & !allowed != 0 {
        return refuse("it holds a component that this CPU does not have");
    }
    let is_standard = is_zero(area, PRESENT_OFFSET + 8..XSAVE_LEAST_BYTES);
    if is_standard { Ok(()) } else { refuse("it is not of the standard format") }
}

/// Notes in an area of XSAVE's that x87 is in its initial configuration, where it is: XRSTOR then sets it to that, and
/// reads none of its registers (Intel SDM vol. 1, sections 13.6 and 13.8).
///
/// A CPU that keeps track of this (XINUSE) has noted it. QEMU's does not, and when it loads x87 from an area, it clears
/// a flag of IGNNE# in CPU 0, from whichever it runs on and without a lock: it can undo a write of CPU 0 to the same
/// word just then, such as that a guest was left or that nested paging is on.
pub fn note_initial_x87(area: &mut [u8]) {
    let is_initial =
        u64_at(area, 0) == FNINIT_CONTROL && [8..24, 32..160].into_iter().all(|range| is_zero(area, range));
    if is_initial && let Some(present) = area.get_mut(PRESENT_OFFSET) {
        *present &= !1;
    }
}

/// Whether all bytes are zero; false past the end. The range is of whole words.
#[inline]
fn is_zero(area: &[u8], range: Range<usize>) -> bool {
    let any = |bytes: &[u8]| bytes.as_chunks().0.iter().fold(0, |any, word| any | u64::from_ne_bytes(*word));
    area.get(range).is_some_and(|bytes| any(bytes) == 0)
}

/// Eight bytes; all ones past the end.
fn u64_at(area: &[u8], offset: usize) -> u64 {
    area.get(offset..).and_then(|rest| rest.first_chunk()).map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}
