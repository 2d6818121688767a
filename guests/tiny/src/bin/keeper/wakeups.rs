// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late a guest wakes that sleeps until its timer.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::wrong::Wrong;
use tiny::apic::Register;
use tiny::cpu::{ticks, write_msr};
use tiny::{apic, cpu, interrupts, print, random, timing};

const TIMER_VECTOR: u8 = 0x42;
const TSC_DEADLINE: u32 = 2 << 17;
/// Ticks until the timer: at least, and how many more there may be.
const LEAST: u64 = 1 << 20;
const SPREAD: u64 = 1 << 21;

/// The time stamp at which the handler of the last interrupt began; 0 until it does.
static WOKEN: AtomicU64 = AtomicU64::new(0);

/// Sleeps so often, over and over, for as many ticks as chance has it, and prints how many ticks behind its timer it
/// woke: the median, what 99 of 100 do not exceed, and the most.
pub fn measure(seed: u64, samples: u32) -> Result<(), Wrong> {
    interrupts::hook(TIMER_VECTOR, |_| WOKEN.store(ticks(), Ordering::Release));
    apic::write(Register::Timer, TSC_DEADLINE | u32::from(TIMER_VECTOR));
    let mut chance = random::Random::new(seed);
    for window in 0_u64.. {
        let spread = timing::spread(samples as usize, || sleep(LEAST + chance.draw() % SPREAD));
        let timing::Spread { median, p99, most } = spread;
        print!("keeper: wakeups {window} n={samples} median={median} p99={p99} most={most}\n");
    }
    Ok(())
}

/// Returns how many ticks late it woke.
fn sleep(for_ticks: u64) -> u64 {
    WOKEN.store(0, Ordering::Release);
    let due = ticks() + for_ticks;
    write_msr(apic::TSC_DEADLINE_MSR, due);
    while WOKEN.load(Ordering::Acquire) == 0 {
        cpu::sleep_until_interrupt();
    }
    WOKEN.load(Ordering::Acquire).saturating_sub(due)
}
