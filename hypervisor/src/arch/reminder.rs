// SPDX-License-Identifier: MIT OR Apache-2.0
//! The repetition of interrupts to CPUs that have not answered.
//!
//! An interrupt is not lost between real CPUs. QEMU's emulator can lose one, with one thread for all CPUs too: VMRUN
//! and #VMEXIT change the CPU's pending requests there without the lock under which devices and other CPUs add to them
//! (`interrupt_request` in `target/i386/tcg/sysemu/svm_helper.c`, QEMU 7.2 and 10). The local APIC still has it, and
//! requests it again with the next interrupt, or when the task priority is written (`cpu::poll_pending_interrupts`).
//! So an idle CPU writes it before it halts, and each CPU after each exit: a timer's interrupt that is lost there would
//! leave the CPU to its guest for as long as that does not exit. (Seen once in some 50 runs of a host of one CPU whose
//! guests poll.)

use super::{cpu, timer};

const INTERVAL_US: u64 = 1_000;

/// The next time.
pub struct Reminder {
    due: u64,
}

impl Reminder {
    /// A reminder for CPUs that have just been interrupted.
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
