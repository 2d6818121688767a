// SPDX-License-Identifier: MIT OR Apache-2.0
//! Check that registers hold their values.

use crate::state::State;
use crate::wrong::Wrong;
use core::hint::spin_loop;
use tiny::apic::Register;
use tiny::{apic, cpu, interrupts};

const TIMER_VECTOR: u8 = 0x40;
const PERIODIC: u32 = 1 << 17;
const DIVIDE_BY_1: u32 = 0b1011;
/// The timer's period in ticks of its clock: a millisecond at 1 GHz, as under KVM and Baton.
const PERIOD: u32 = 1_000_000;
/// Polls of the counter between two samples of the registers.
const SPINS: u32 = 50;

/// After a reset all are zero, but for the control words.
pub fn are_fresh() -> Result<(), Wrong> {
    State::read().compare(&State::after_reset())
}

/// Leaves a pattern in all of them.
pub fn stain(seed: u64) -> Result<(), Wrong> {
    let pattern = State::pattern(seed);
    pattern.load();
    State::read().compare(&pattern)
}

/// They keep a pattern while the program runs, is interrupted, and sleeps. A round spins until the timer's interrupt,
/// then sleeps until the next.
pub fn hold(seed: u64, rounds: u32) -> Result<(), Wrong> {
    let pattern = State::pattern(seed);
    pattern.load();
    apic::write(Register::TimerDivide, DIVIDE_BY_1);
    apic::write(Register::Timer, PERIODIC | u32::from(TIMER_VECTOR));
    apic::write(Register::TimerInitialCount, PERIOD);
    let result = (0..rounds).try_for_each(|_| {
        cpu::interrupts_on();
        let spun = spin(&pattern);
        cpu::interrupts_off();
        spun?;
        cpu::sleep_until_interrupt();
        State::read().compare(&pattern)
    });
    apic::write(Register::TimerInitialCount, 0);
    result
}

fn spin(pattern: &State) -> Result<(), Wrong> {
    let before = interrupts::count(TIMER_VECTOR);
    while interrupts::count(TIMER_VECTOR) == before {
        State::read().compare(pattern)?;
        (0..SPINS).for_each(|_| spin_loop());
    }
    Ok(())
}
