// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel's top-down metrics: of all issue slots, which a counter of its own counts, what share was retired, and where
//! the others went (Intel SDM vol. 3, section 20.3.9.3).
//!
//! The CPU gives each share in eight bits, as a fraction of what has been counted since both registers were
//! written. A scheduler that puts such a share back at a switch rounds again each time, and loses a turn too short to
//! move it. So here the CPU begins each time with nothing, and what it reports is added up as slots, which do not
//! round: the sum is off by no more than the shares' own last bit, after however many switches.

use crate::intel::number::{FIXED_CONTROL, FIXED_COUNTER, GLOBAL_CONTROL};
use crate::refused::Refused;
use crate::{Counter, Msrs, Width};

/// The shares' register.
pub const METRICS: u32 = 0x329;
/// The fixed-function counter that counts slots.
pub const SLOTS_COUNTER: Counter = Counter::fixed(3);
/// Its register.
pub const SLOTS: u32 = FIXED_COUNTER + 3;
/// IA32_PERF_GLOBAL_CTRL: slots are counted; shares are.
pub const ENABLE_SLOTS: u64 = 1 << 35;
/// See above.
pub const ENABLE_METRICS: u64 = 1 << 48;
/// RDPMC's number of the shares.
pub const RDPMC_METRICS: u32 = 1 << 29;
/// Its field in the fixed counters' control: modes (0b0011) and interrupt (0b1000).
pub const FIXED_FIELD: u64 = 0b1011 << FIELD_SHIFT;
/// The bits of the global control that are its.
pub const GLOBAL: u64 = ENABLE_SLOTS | ENABLE_METRICS;

const FIELD_SHIFT: u32 = 12;
const MODES: u64 = 0b11 << FIELD_SHIFT;
const INTERRUPT: u64 = 0b1000 << FIELD_SHIFT;
/// Shares, the four of the first level and the four below them; one that a CPU has not is always 0.
const PARTS: usize = 8;
/// A whole.
const FULL: u64 = 0xff;
const WIDTH: Width = Width::USUAL;

/// Returns whether a CPU has them: leaf 0xA's EDX and IA32_PERF_CAPABILITIES.
pub const fn is_present(leaf_a_edx: u32, capabilities: u64) -> bool {
    const AVAILABLE: u64 = 1 << 15;
    leaf_a_edx & 0x1f > 3 && capabilities & AVAILABLE != 0
}

/// One user's slots and shares.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Topdown {
    global: u64,
    field: u64,
    slots: u64,
    /// Slots since the shares were written, and of them each share's, times [`FULL`].
    total: u64,
    parts: [u64; PARTS],
    /// Bits of the global status that are its.
    status: u64,
    is_loaded: bool,
}

impl Topdown {
    /// Its bits of the global control.
    pub const fn global(&self) -> u64 {
        self.global
    }

    /// Sets them; others are not checked.
    pub const fn set_global(&mut self, value: u64) {
        self.global = value & GLOBAL;
    }

    /// Its field in the fixed counters' control.
    pub const fn field(&self) -> u64 {
        self.field
    }

    /// Sets it; others are not checked.
    pub const fn set_field(&mut self, value: u64) {
        self.field = value & FIXED_FIELD;
    }

    /// Its bits of the global status.
    pub const fn status(&self) -> u64 {
        self.status
    }

    /// It writes the status' clear register.
    pub const fn clear_status(&mut self, value: u64) {
        self.status &= !value;
    }

    /// RDMSR of one of its registers.
    pub fn read(&self, number: u32) -> Option<u64> {
        match number {
            SLOTS => Some(self.slots),
            METRICS => Some((0..PARTS).fold(0, |all, part| all | self.share(part) << (8 * part))),
            _ => None,
        }
    }

    /// WRMSR of one of its registers. Shares are those of the slots that are in the counter: the counter is written
    /// first.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number, or a reserved bit is set.
    pub fn write(&mut self, number: u32, value: u64) -> Result<(), Refused> {
        match number {
            SLOTS if value & !WIDTH.mask() == 0 => self.slots = value,
            METRICS => {
                self.total = self.slots;
                self.parts = core::array::from_fn(|part| (value >> (8 * part) & FULL) * self.slots);
            }
            _ => return Err(Refused),
        }
        Ok(())
    }

    /// The user runs from now on.
    pub fn enter(&mut self, msrs: &mut impl Msrs) {
        if self.global & ENABLE_SLOTS == 0 || self.field & MODES == 0 {
            return;
        }
        if !self.is_loaded {
            msrs.write(SLOTS, 0);
            msrs.write(METRICS, 0);
            self.is_loaded = true;
        }
        // The sum overflows, and not the CPU's own counter: that one does not get so far.
        change(msrs, FIXED_CONTROL, FIXED_FIELD, self.field & MODES);
        change(msrs, GLOBAL_CONTROL, GLOBAL, self.global);
    }

    /// It does not run any more: what it has counted is its own. Returns whether an interrupt is due.
    pub fn leave(&mut self, msrs: &mut impl Msrs) -> bool {
        if !self.is_loaded {
            return false;
        }
        change(msrs, GLOBAL_CONTROL, GLOBAL, 0);
        let (slots, shares) = (msrs.read(SLOTS), msrs.read(METRICS));
        if slots == 0 {
            return false;
        }
        msrs.write(SLOTS, 0);
        msrs.write(METRICS, 0);
        self.add(slots, shares)
    }

    /// Another's turn: nothing of it is left.
    pub fn switch_out(&mut self, msrs: &mut impl Msrs) {
        if self.is_loaded {
            change(msrs, FIXED_CONTROL, FIXED_FIELD, 0);
            self.is_loaded = false;
        }
    }

    fn add(&mut self, slots: u64, shares: u64) -> bool {
        if self.global & ENABLE_METRICS != 0 {
            self.total += slots;
            for (part, sum) in self.parts.iter_mut().enumerate() {
                *sum += (shares >> (8 * part) & FULL) * slots;
            }
            // Far beyond what the counter holds: only the proportions matter.
            if self.total >> WIDTH.bits() != 0 {
                self.total /= 2;
                self.parts.iter_mut().for_each(|sum| *sum /= 2);
            }
        }
        let (now, has_overflowed) = WIDTH.advance(self.slots, slots);
        self.slots = now;
        if has_overflowed {
            self.status |= self.global;
        }
        has_overflowed && self.field & INTERRUPT != 0
    }

    /// To the nearest.
    fn share(&self, part: usize) -> u64 {
        (self.parts[part] + self.total / 2).checked_div(self.total).unwrap_or(0).min(FULL)
    }
}

fn change(msrs: &mut impl Msrs, register: u32, clear: u64, set: u64) {
    let now = msrs.read(register);
    let next = now & !clear | set;
    if now != next {
        msrs.write(register, next);
    }
}
