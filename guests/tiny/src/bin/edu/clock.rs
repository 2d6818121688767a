// SPDX-License-Identifier: MIT OR Apache-2.0
//! A clock that wakes the CPU every 10 ms: the local APIC's timer.

use core::hint::spin_loop;

use tiny::apic::{self, Register};
use tiny::{cpu, interrupts};

const VECTOR: u8 = 0x41;
const PERIODIC: u32 = 1 << 17;
const DIVIDE_BY_1: u32 = 0b1011;
/// Ticks of the timer's clock in a period: its clock has 1 GHz under QEMU and Baton.
const PERIOD: u32 = 10_000_000;
/// Milliseconds of a period.
pub const PERIOD_MS: u32 = 10;

/// Lets it run.
pub fn start() {
    apic::write(Register::TimerDivide, DIVIDE_BY_1);
    apic::write(Register::Timer, PERIODIC | u32::from(VECTOR));
    apic::write(Register::TimerInitialCount, PERIOD);
}

/// Periods so far. Those that interrupts were kept out of are one.
pub fn periods() -> u32 {
    interrupts::count(VECTOR)
}

/// How to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The CPU executes instructions.
    Running,
    /// It sleeps in HLT.
    Halted,
}

/// Lets interrupts in until the condition holds; false if it did not within so many milliseconds.
pub fn wait(waiting: Waiting, limit_ms: u32, holds: impl Fn() -> bool) -> bool {
    let start = periods();
    let is_over = || (periods() - start) * PERIOD_MS > limit_ms;
    match waiting {
        Waiting::Halted => {
            while !holds() && !is_over() {
                cpu::sleep_until_interrupt();
            }
        }
        // Once for all polls: QEMU keeps interrupts out behind a PAUSE that follows STI.
        Waiting::Running => {
            cpu::interrupts_on();
            while !holds() && !is_over() {
                spin_loop();
            }
            cpu::interrupts_off();
        }
    }
    holds()
}

/// Lets interrupts in for so long.
pub fn pause(ms: u32) {
    wait(Waiting::Halted, ms, || false);
}
