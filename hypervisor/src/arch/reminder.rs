// SPDX-License-Identifier: MIT OR Apache-2.0
//! The repetition of interrupts to CPUs that have not answered.
//!
//! An interrupt is not lost between real CPUs. QEMU's emulator can lose one: VMRUN with a virtual interrupt
//! changes the CPU's pending requests there without the lock under which others add to them. It is heard with the
//! next one, or when the task priority is written (`cpu::poll_pending_interrupts`). (Seen in an emulator that counts
//! them: about one in a minute of busy guests on two CPUs, then unheard for up to 0.7 ms.)

use super::{cpu, timer};

const INTERVAL_US: u64 = 1_000;

/// The next time.
pub struct Reminder {
    due: u64,
}

impl Reminder {
    /// Everybody has just been interrupted.
    pub fn new() -> Self {
        Self { due: cpu::tsc().saturating_add(timer::us_to_ticks(INTERVAL_US)) }
    }

    /// Returns whether it is time; then the next one is an interval later.
    pub fn is_due(&mut self) -> bool {
        let is_due = cpu::tsc() >= self.due;
        if is_due {
            *self = Self::new();
        }
        is_due
    }
}
