// SPDX-License-Identifier: MIT OR Apache-2.0
//! Top-down metrics (Intel SDM vol. 3, section 20.3.9.3): slots, and shares of them in eight bits each.

use super::register::Register;

pub(super) const ENABLE_SLOTS: u64 = 1 << 35;
pub(super) const ENABLE_METRICS: u64 = 1 << 48;
const FULL: u64 = 0xff;

/// The registers. Inside, the parts of the slots are kept exactly; what a write of the shares states is all that is
/// known then.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Metrics {
    slots: Register,
    total: u64,
    parts: [u64; 8],
}

impl Metrics {
    /// Counts slots for their shares. Returns whether the counter has overflowed.
    pub fn count(&mut self, parts: [u64; 8], has_shares: bool) -> bool {
        let more = parts.iter().sum();
        if has_shares {
            self.total += more;
            self.parts.iter_mut().zip(parts).for_each(|(part, more)| *part += more);
        }
        self.slots.advance(more)
    }

    pub fn read(&self, number: u32) -> Option<u64> {
        let share = |part: u64| (part * FULL + self.total / 2).checked_div(self.total).unwrap_or(0);
        match number {
            0x30c => Some(self.slots.value),
            0x329 => Some(self.parts.iter().enumerate().fold(0, |all, (at, part)| all | share(*part) << (8 * at))),
            _ => None,
        }
    }

    pub fn write(&mut self, number: u32, value: u64) {
        if number == 0x30c {
            return self.slots.set(value);
        }
        self.total = self.slots.value;
        self.parts = core::array::from_fn(|at| (value >> (8 * at) & FULL) * self.total / FULL);
    }
}
