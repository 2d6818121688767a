// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers and counters of an Intel guest, and their effects.

use super::numbering::{INTEL_FIXED, INTEL_GENERAL, Register};
use crate::event::Shape;
use crate::intel::number::*;
use crate::intel::{CYCLES, INSTRUCTIONS, fixed};
use crate::{Event, Modes, What, Width};

const DEBUG_CONTROL: u32 = 0x1d9;
/// PERF_CAPABILITIES: values can be written whole.
pub(super) const CAPABILITIES: u64 = 1 << 13;
/// DEBUGCTL: an overflow's interrupt clears the global control.
pub(super) const FREEZE_ON_INTERRUPT: u64 = 1 << 12;
/// RDPMC: a counter of fixed purpose.
const RDPMC_FIXED: u32 = 1 << 30;

#[inline(always)]
pub(super) fn register(number: u32) -> Option<Register> {
    let general = |first: u32| Some((number - first) as usize);
    // The registers that a kernel uses most come first.
    Some(match number {
        FIXED_CONTROL => Register::FixedControl,
        GLOBAL_STATUS => Register::GlobalStatus,
        GLOBAL_CONTROL => Register::GlobalControl,
        GLOBAL_CLEAR => Register::GlobalClear,
        _ => match number {
            SELECT..=0x18d => Register::Select(general(SELECT)?),
            FULL_WIDTH_COUNTER..=0x4c8 => Register::Counter(general(FULL_WIDTH_COUNTER)?),
            COUNTER..=0xc8 => Register::ShortCounter(general(COUNTER)?),
            FIXED_COUNTER..=0x30b => Register::Counter(INTEL_GENERAL + (number - FIXED_COUNTER) as usize),
            crate::intel::number::CAPABILITIES => Register::Capabilities,
            DEBUG_CONTROL => Register::DebugControl,
            _ => return None,
        },
    })
}

pub(super) fn slot_of_rdpmc(counter: u32) -> Option<usize> {
    let number = (counter & !RDPMC_FIXED) as usize;
    if counter & RDPMC_FIXED != 0 {
        (number < INTEL_FIXED).then(|| INTEL_GENERAL + number)
    } else {
        (number < INTEL_GENERAL).then_some(number)
    }
}

/// Returns what a counter of fixed purpose is to count, and the number under which a filter knows it.
pub(super) fn fixed_event(control: u64, counter: usize) -> Option<(Event, (u16, u8))> {
    let field = control >> (4 * counter);
    let modes = Modes { kernel: field & 1 != 0, user: field & 2 != 0 };
    let (what, number) = match counter as u8 {
        fixed::INSTRUCTIONS => (What::Instructions, INSTRUCTIONS),
        fixed::CYCLES => (What::Cycles, CYCLES),
        _ => (What::ReferenceCycles, (0, 3)),
    };
    (!modes.is_empty()).then_some((Event { what, modes, shape: Shape::default() }, number))
}

/// In which modes a counter of fixed purpose is to count, as its two bits; 0: it is not.
pub(super) const fn fixed_modes(control: u64, counter: usize) -> u64 {
    control >> (4 * counter) & 0b11
}

pub(super) const fn fixed_interrupts(control: u64, counter: usize) -> bool {
    control >> (4 * counter) & 1 << 3 != 0
}

/// Returns what leaf 0xA of CPUID reports: EAX, EBX, EDX. `unavailable` has the events of table 20-1 that cannot be
/// counted.
pub const fn leaf(unavailable: u32) -> (u32, u32, u32) {
    const VERSION: u32 = 2;
    /// Events that EBX speaks of.
    const EVENTS: u32 = 7;
    let width = Width::USUAL.bits() as u32;
    let eax = VERSION | (INTEL_GENERAL as u32) << 8 | width << 16 | EVENTS << 24;
    (eax, unavailable & ((1 << EVENTS) - 1), INTEL_FIXED as u32 | width << 5)
}
