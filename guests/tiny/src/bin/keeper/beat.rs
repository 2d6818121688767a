// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that sleeps between the lines of a heartbeat, which is the agent's: greeting and `heartbeat N`.

use crate::wrong::Wrong;
use tiny::apic::Register;
use tiny::cpu::{ticks, write_msr};
use tiny::{apic, cpu, interrupts, print};

const TIMER_VECTOR: u8 = 0x42;
const TSC_DEADLINE: u32 = 2 << 17;
/// Ticks between two lines: some tens of milliseconds.
const PERIOD: u64 = 1 << 27;

/// Prints so many beats. A beat is due so many periods after the beat before was: what the guest misses it catches up.
pub fn beat(beats: u64, periods: u64) -> Result<(), Wrong> {
    print!("Hello from a guest of Baton\n");
    apic::write(Register::Timer, TSC_DEADLINE | u32::from(TIMER_VECTOR));
    let mut due = ticks();
    for number in 0..beats {
        print!("heartbeat {number} late={}\n", ticks() - due);
        due += PERIOD * periods;
        let fired = interrupts::count(TIMER_VECTOR);
        write_msr(apic::TSC_DEADLINE_MSR, due);
        while interrupts::count(TIMER_VECTOR) == fired {
            cpu::sleep_until_interrupt();
        }
        if ticks() < due {
            return Err(Wrong { what: "the timer of beat", item: number, found: ticks(), wanted: due });
        }
    }
    Ok(())
}
